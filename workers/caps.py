"""The limits that a task's spending counts against, each with who can raise it.

The ledger is asked for what counts against each; see `workers.budgets`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy import ColumnElement
from sqlmodel import Session, col, select

from store.database import Database
from store.repo_config import RepositoryConfig
from store.settings import Settings
from store.suggest import did_you_mean
from store.tables import AuditEntry, CapOverride, Ledger, Repository, Task
from store.types import utc_now
from workers.configuration import kept
from workers.errors import BudgetError
from workers.locks import take_turn
from workers.money import to_micros, to_usd

WARN_AT = 0.8
"""The part of a cap after which people are warned."""
LARGEST_CAP_USD = 1_000_000.0
"""A cap above it is a slip of the finger."""
_BY_ADMIN = "An admin can raise it on the dashboard, under Budgets."


@dataclass(frozen=True)
class Cap:
    """A limit on what may be spent since a moment."""

    name: str
    """`day` or `month`."""
    limit_micros: int
    raised_by: str
    """A sentence: who can raise it, and where."""
    since: Callable[[], datetime]
    whose: str = "The"
    """`The`, `This repository's` and so on: the words before "budget"."""
    rows: ColumnElement[bool] | None = None
    """Which rows of the ledger count; None: all."""

    def title(self) -> str:
        return f"{self.whose} budget of ${to_usd(self.limit_micros):.2f} a {self.name}"

    def refusal(self) -> str:
        """Return the sentences that tell people which cap is reached and who can raise it."""
        return f"{self.title()} is used up. {self.raised_by}"

    def warning(self, spent_micros: int) -> str | None:
        """Return the sentences for a cap that is nearly reached, or None where it is not."""
        if spent_micros < WARN_AT * self.limit_micros:
            return None
        if spent_micros >= self.limit_micros:
            return self.refusal()
        return f"{self.title()} is {spent_micros * 100 // self.limit_micros}% used. {self.raised_by}"


def installation_caps(session: Session, settings: Settings) -> tuple[Cap, ...]:
    """Return the caps that hold for all tasks of this acrouter: the settings', or what a person put in their place."""
    changed = {row.name: row.limit_micros for row in session.exec(select(CapOverride)).all()}
    caps = (
        _cap("day", settings.day_budget_usd, _by_operator("ACROUTER_DAY_BUDGET_USD")),
        _cap("month", settings.month_budget_usd, _by_operator("ACROUTER_MONTH_BUDGET_USD")),
    )
    return tuple(
        replace(cap, limit_micros=changed[cap.name], raised_by=_BY_ADMIN) if cap.name in changed else cap
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


def caps_for(session: Session, settings: Settings, *, repository_id: int | None, requested_by: str) -> tuple[Cap, ...]:
    """Return every cap that a task of this person in this repository counts against.

    A repository's own file is taken as it was read last, at the latest when the task began.
    """
    repository = session.get(Repository, repository_id) if repository_id is not None else None
    caps = list(installation_caps(session, settings))
    if repository is None:
        return tuple(caps)
    config = kept(session, repository_id)
    account = repository.full_name.split("/", 1)[0]
    caps += _organisation_caps(settings, config, account, repository.installation_id)
    caps += _repository_caps(settings, config, repository.id)
    if requested_by:
        caps += _person_caps(settings, config, requested_by, repository.id)
    return tuple(caps)


def _organisation_caps(settings: Settings, config: RepositoryConfig, account: str, installation_id: int) -> list[Cap]:
    rows = col(Ledger.repository_id).in_(select(Repository.id).where(Repository.installation_id == installation_id))
    whose = f"{account}'s"
    found = []
    for name, operators, own in (
        ("day", settings.organisation_day_budget_usd, config.organisation.day_budget_usd),
        ("month", settings.organisation_month_budget_usd, config.organisation.month_budget_usd),
    ):
        setting = f"ACROUTER_ORGANISATION_{name.upper()}_BUDGET_USD"
        key = f"Whoever may change {account}/.github can raise `organisation.{name}_budget_usd` in its .acrouter.yml."
        found += _lower(name, (operators, _by_operator(setting)), (own, key), whose, rows)
    return found


def _repository_caps(settings: Settings, config: RepositoryConfig, repository_id: int) -> list[Cap]:
    rows = col(Ledger.repository_id) == repository_id
    found = []
    for name, operators, own in (
        ("day", settings.repository_day_budget_usd, config.day_budget_usd),
        ("month", settings.repository_month_budget_usd, config.month_budget_usd),
    ):
        setting = f"ACROUTER_REPOSITORY_{name.upper()}_BUDGET_USD"
        key = f"A maintainer can raise `{name}_budget_usd` in .acrouter.yml."
        found += _lower(name, (operators, _by_operator(setting)), (own, key), "This repository's", rows)
    return found


def _person_caps(settings: Settings, config: RepositoryConfig, login: str, repository_id: int) -> list[Cap]:
    theirs = col(Ledger.task_id).in_(select(Task.id).where(Task.requested_by == login))
    here = theirs & (col(Ledger.repository_id) == repository_id)
    found = []
    if settings.person_day_budget_usd is not None:
        by = _by_operator("ACROUTER_PERSON_DAY_BUDGET_USD")
        found.append(_cap("day", settings.person_day_budget_usd, by, f"{login}'s", theirs))
    if config.person_day_budget_usd is not None:
        by = "A maintainer can raise `person_day_budget_usd` in .acrouter.yml."
        found.append(_cap("day", config.person_day_budget_usd, by, f"{login}'s", here))
    return found


def _lower(
    name: str,
    operators: tuple[float | None, str],
    own: tuple[float | None, str],
    whose: str,
    rows: ColumnElement[bool],
) -> list[Cap]:
    """The lower of two limits; raising the higher one would help nobody."""
    given = [(limit, by) for limit, by in (operators, own) if limit is not None]
    if not given:
        return []
    limit, by = min(given, key=lambda pair: pair[0])
    return [_cap(name, limit, by, whose, rows)]


def _cap(
    name: str, limit_usd: float, raised_by: str, whose: str = "The", rows: ColumnElement[bool] | None = None
) -> Cap:
    since = _start_of_day if name == "day" else _start_of_month
    return Cap(name, to_micros(limit_usd), raised_by, since, whose, rows)


def _by_operator(setting: str) -> str:
    return f"An operator can raise {setting}."


def _start_of_day() -> datetime:
    return utc_now().replace(hour=0, minute=0, second=0, microsecond=0)


def _start_of_month() -> datetime:
    return _start_of_day().replace(day=1)
