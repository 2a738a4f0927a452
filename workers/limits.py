"""The operator's limits on spending: what the settings say, or what an admin put in their place on the dashboard."""

from dataclasses import dataclass

from sqlmodel import Session, select

from store.database import Database
from store.settings import Settings
from store.suggest import did_you_mean
from store.tables import AuditEntry, CapOverride
from store.types import utc_now
from workers.errors import BudgetError
from workers.locks import take_turn
from workers.money import to_micros, to_usd

LIMITS = (
    *("day", "month", "organisation_day", "organisation_month"),
    *("repository_day", "repository_month", "person_day"),
)
"""As in `ACROUTER_DAY_BUDGET_USD`. The first two are of all tasks together, the others of each one."""
LARGEST_USD = 1_000_000.0
"""A limit above it is a slip of the finger."""


@dataclass(frozen=True)
class Limit:
    """One of the operator's limits, as it holds now."""

    name: str
    setting_usd: float | None
    micros: int | None
    """None: there is no such limit."""
    set_by: str = ""
    """The admin who put it in place of the setting; empty where the setting holds."""

    @property
    def setting(self) -> str:
        return f"ACROUTER_{self.name.upper()}_BUDGET_USD"

    @property
    def usd(self) -> float | None:
        return None if self.micros is None else to_usd(self.micros)

    @property
    def raised_by(self) -> str:
        """A sentence: who can raise it, and where."""
        if self.set_by:
            return "An admin can raise it on the dashboard, under Budgets."
        return f"An operator can raise {self.setting}."


def operators_limits(session: Session, settings: Settings) -> dict[str, Limit]:
    """Return every limit of the operator by its name, in the order of `LIMITS`."""
    changed = {row.name: row for row in session.exec(select(CapOverride)).all()}
    found = {}
    for name in LIMITS:
        usd: float | None = getattr(settings, f"{name}_budget_usd")
        row = changed.get(name)
        micros = None if usd is None else to_micros(usd)
        found[name] = Limit(name, usd, row.limit_micros, row.set_by) if row else Limit(name, usd, micros)
    return found


def set_limit(database: Database, settings: Settings, name: str, usd: float | None, *, by: str) -> None:
    """Put a limit in place of a setting's, or with None the setting's own back, and keep it in the audit log.

    Raises:
        BudgetError: there is no such limit, or the amount is none.
    """
    if name not in LIMITS:
        raise BudgetError(f"There is no cap '{name}'.{did_you_mean(name, LIMITS)} There are: {', '.join(LIMITS)}.")
    if usd is not None and not 0 < usd <= LARGEST_USD:
        raise BudgetError(f"The cap must be above 0 and at most {LARGEST_USD:,.0f} US dollars.")
    with database.session() as session:
        take_turn(session, "ledger")
        before = operators_limits(session, settings)[name].usd
        old = session.get(CapOverride, name)
        if usd is not None:
            session.merge(CapOverride(name=name, limit_micros=to_micros(usd), set_by=by, at=utc_now()))
        elif old is not None:
            session.delete(old)
        session.flush()
        after = operators_limits(session, settings)[name].usd
        session.add(
            AuditEntry(
                actor=by,
                action="cap changed" if usd is not None else "cap back to its setting",
                target=name,
                data={"before_usd": before, "after_usd": after},
            )
        )
