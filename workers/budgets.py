"""Money: reserved before each model call, settled after it, so that no cap is ever passed.

The ledger is append-only. What counts as spent is every row that closes a reservation, plus every reservation that no
row has closed yet. Windows (day, month, in UTC) are computed from it, never kept as counters.
"""

import math
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy import exists
from sqlalchemy.orm import aliased
from sqlmodel import Session, col, func, select

from sandbox.errors import BudgetExceeded
from store.database import Database
from store.settings import Settings
from store.states import LedgerKind
from store.suggest import did_you_mean
from store.tables import AuditEntry, CapOverride, Ledger, Task
from store.types import utc_now
from workers.errors import BudgetError
from workers.locks import take_turn

MICROS = 1_000_000
LARGEST_CAP_USD = 1_000_000.0
"""A cap above it is a slip of the finger."""


def to_micros(usd: float) -> int:
    """Return US dollars as whole micro-dollars, rounded up: a cap errs on the safe side."""
    return math.ceil(round(usd * MICROS, 6))


def to_usd(micros: int) -> float:
    return micros / MICROS


@dataclass(frozen=True)
class Cap:
    """A limit on what may be spent since a moment."""

    name: str
    limit_micros: int
    setting: str
    """What an operator changes to raise it."""
    since: Callable[[], datetime]

    def refusal(self) -> str:
        """Return the sentence that tells people which cap is reached and who can raise it."""
        return (
            f"The budget of ${to_usd(self.limit_micros):.2f} a {self.name} is used up. "
            f"An operator can raise {self.setting}."
        )


def _start_of_day() -> datetime:
    return utc_now().replace(hour=0, minute=0, second=0, microsecond=0)


def _start_of_month() -> datetime:
    return _start_of_day().replace(day=1)


def installation_caps(session: Session, settings: Settings) -> tuple[Cap, ...]:
    """Return the caps that hold for all tasks together: the settings', or what a person put in their place."""
    changed = {row.name: row.limit_micros for row in session.exec(select(CapOverride)).all()}
    caps = (
        Cap("day", to_micros(settings.day_budget_usd), "ACROUTER_DAY_BUDGET_USD", _start_of_day),
        Cap("month", to_micros(settings.month_budget_usd), "ACROUTER_MONTH_BUDGET_USD", _start_of_month),
    )
    return tuple(
        replace(cap, limit_micros=changed[cap.name], setting="it on the dashboard, under Budgets")
        if cap.name in changed
        else cap
        for cap in caps
    )


def set_cap(database: Database, settings: Settings, name: str, usd: float | None, *, by: str) -> None:
    """Put a limit in place of a setting's, or with None the setting's own back, and keep it in the audit log.

    Raises:
        BudgetError: there is no such cap, or the amount is none.
    """
    with database.session() as session:
        take_turn(session, "ledger")
        before = {cap.name: cap.limit_micros for cap in installation_caps(session, settings)}
        if name not in before:
            raise BudgetError(f"There is no cap '{name}'.{did_you_mean(name, before)} There are: {', '.join(before)}.")
        old = session.get(CapOverride, name)
        if usd is None:
            if old is not None:
                session.delete(old)
        elif not (math.isfinite(usd) and 0 < usd <= LARGEST_CAP_USD):
            raise BudgetError(f"The cap of a {name} must be above 0 and at most {LARGEST_CAP_USD:,.0f} US dollars.")
        else:
            session.merge(CapOverride(name=name, limit_micros=to_micros(usd), set_by=by, at=utc_now()))
        session.flush()
        after = {cap.name: cap.limit_micros for cap in installation_caps(session, settings)}
        session.add(
            AuditEntry(
                actor=by,
                action="cap changed" if usd is not None else "cap back to its setting",
                target=name,
                data={"before_usd": to_usd(before[name]), "after_usd": to_usd(after[name])},
            )
        )


def spent_micros(
    session: Session, *, task_id: int | None = None, attempt_id: int | None = None, since: datetime | None = None
) -> int:
    """Return what counts as spent, open reservations included, in micro-dollars.

    An open reservation counts whatever `since` is: it will be settled in the window that is open then.
    """
    closing = aliased(Ledger)
    is_closed = exists().where(col(closing.reservation) == col(Ledger.reservation), col(closing.closing).is_(True))
    query = select(func.coalesce(func.sum(Ledger.usd_micros), 0)).where(col(Ledger.closing).is_(True) | ~is_closed)
    if task_id is not None:
        query = query.where(Ledger.task_id == task_id)
    if attempt_id is not None:
        query = query.where(Ledger.attempt_id == attempt_id)
    if since is not None:
        query = query.where(col(Ledger.closing).is_(False) | (col(Ledger.at) >= since))
    return int(session.exec(query).one())


def reserve(database: Database, settings: Settings, *, task_id: int, attempt_id: int, model: str, usd: float) -> str:
    """Reserve `usd` for one model call and return the reservation's id.

    Raises:
        BudgetExceeded: the task's budget or a cap of the installation would be passed.
    """
    amount = to_micros(usd)
    reservation = uuid.uuid4().hex
    with database.session() as session:
        take_turn(session, "ledger")
        task = session.get_one(Task, task_id)
        spent = spent_micros(session, task_id=task_id)
        if spent + amount > to_micros(task.budget_usd):
            raise BudgetExceeded(
                f"The next call could cost ${usd:.4f}; of this task's budget of ${task.budget_usd:.2f}, "
                f"${to_usd(spent):.4f} is used. `/route retry budget=USD` starts again with another budget, up to the "
                "operator's ACROUTER_TASK_BUDGET_USD."
            )
        for cap in installation_caps(session, settings):
            if spent_micros(session, since=cap.since()) + amount > cap.limit_micros:
                raise BudgetExceeded(cap.refusal())
        session.add(
            Ledger(
                reservation=reservation,
                kind=LedgerKind.RESERVED,
                usd_micros=amount,
                task_id=task_id,
                attempt_id=attempt_id,
                repository_id=task.repository_id,
                model=model,
            )
        )
    return reservation


def settle(database: Database, reservation: str, usd: float) -> None:
    """Close a reservation with what the call cost. A second settlement of the same one changes nothing."""
    with database.session() as session:
        take_turn(session, "ledger")
        _close(session, reservation, LedgerKind.SETTLED, to_micros(usd))


def assume_open(session: Session, task_id: int) -> int:
    """Count every open reservation of a task as spent, because the worker that could have settled it is gone.

    Returns how many there were.
    """
    closing = aliased(Ledger)
    is_closed = exists().where(col(closing.reservation) == col(Ledger.reservation), col(closing.closing).is_(True))
    take_turn(session, "ledger")
    open_rows = session.exec(
        select(Ledger).where(Ledger.task_id == task_id, col(Ledger.closing).is_(False), ~is_closed)
    ).all()
    for row in open_rows:
        _close(session, row.reservation, LedgerKind.ASSUMED, row.usd_micros)
    return len(open_rows)


def _close(session: Session, reservation: str, kind: LedgerKind, amount: int) -> None:
    rows = session.exec(select(Ledger).where(Ledger.reservation == reservation)).all()
    if any(row.closing for row in rows):
        return
    opened = next(row for row in rows if not row.closing)
    session.add(
        Ledger(
            reservation=reservation,
            closing=True,
            kind=kind,
            usd_micros=amount,
            task_id=opened.task_id,
            attempt_id=opened.attempt_id,
            repository_id=opened.repository_id,
            model=opened.model,
        )
    )
