"""The limits that a task's spending counts against, each with who can raise it.

The ledger is asked for what counts against each; see `workers.budgets`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy import ColumnElement
from sqlmodel import Session, col, func, select

from store.repo_config import RepositoryConfig
from store.settings import Settings
from store.tables import Installation, Ledger, Repository, Task
from store.types import utc_now
from workers.configuration import ORGANISATION_REPOSITORY, kept
from workers.limits import Limit, operators_limits
from workers.money import to_micros, to_usd

WARN_AT = 0.8
"""The part of a cap after which people are warned."""


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
    file_of: str = ""
    """Full name of the repository whose .acrouter.yml says so; empty where the operator does."""

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


def installation_caps(limits: Mapping[str, Limit]) -> tuple[Cap, ...]:
    """Return the caps that hold for all tasks of this acrouter together."""
    both = (Cap(name, 0, "", _SINCE[name]) for name in ("day", "month"))
    return tuple(cap for draft in both for cap in _lower(limits[draft.name], None, draft))


def caps_for(session: Session, settings: Settings, *, repository_id: int | None, requested_by: str) -> tuple[Cap, ...]:
    """Return every cap that a task of this person in this repository counts against.

    A repository's own file is taken as it was read last, at the latest when the task began.
    """
    limits = operators_limits(session, settings)
    repository = session.get(Repository, repository_id) if repository_id is not None else None
    if repository is None:
        return installation_caps(limits)
    config = kept(session, repository_id)
    persons = person_caps(limits, config, repository, requested_by) if requested_by else []
    return (
        *installation_caps(limits),
        *organisation_caps(limits, config, repository),
        *repository_caps(limits, config, repository),
        *persons,
    )


def organisation_caps(limits: Mapping[str, Limit], config: RepositoryConfig, repository: Repository) -> list[Cap]:
    """Return the caps of a repository's organisation; `config` is what holds in that repository."""
    account = repository.full_name.split("/", 1)[0]
    # Also of its earlier installations: who removes the App and installs it again has spent what was spent.
    theirs = (
        select(Repository.id)
        .join(Installation, col(Installation.id) == col(Repository.installation_id))
        .where(
            (col(Repository.installation_id) == repository.installation_id)
            | (func.lower(Installation.account) == account.lower())
        )
    )
    home = f"{account}/{ORGANISATION_REPOSITORY}"
    found = []
    for name, own in (("day", config.organisation.day_budget_usd), ("month", config.organisation.month_budget_usd)):
        key = f"Whoever may change {home} can raise `organisation.{name}_budget_usd` in its .acrouter.yml."
        cap = Cap(name, 0, key, _SINCE[name], f"{account}'s", col(Ledger.repository_id).in_(theirs), home)
        found += _lower(limits[f"organisation_{name}"], own, cap)
    return found


def repository_caps(limits: Mapping[str, Limit], config: RepositoryConfig, repository: Repository) -> list[Cap]:
    """Return the caps of a repository."""
    rows = col(Ledger.repository_id) == repository.id
    found = []
    for name, own in (("day", config.day_budget_usd), ("month", config.month_budget_usd)):
        key = f"A maintainer can raise `{name}_budget_usd` in .acrouter.yml."
        cap = Cap(name, 0, key, _SINCE[name], "This repository's", rows, repository.full_name)
        found += _lower(limits[f"repository_{name}"], own, cap)
    return found


def person_caps(limits: Mapping[str, Limit], config: RepositoryConfig, repository: Repository, login: str) -> list[Cap]:
    """Return the caps of a person: the operator's in all repositories, and this one's own."""
    theirs = col(Ledger.task_id).in_(select(Task.id).where(Task.requested_by == login))
    everywhere = Cap("day", 0, "", _start_of_day, f"{login}'s", theirs)
    here = theirs & (col(Ledger.repository_id) == repository.id)
    key = "A maintainer can raise `person_day_budget_usd` in .acrouter.yml."
    own = Cap("day", 0, key, _start_of_day, f"{login}'s", here, repository.full_name)
    return [
        *_lower(limits["person_day"], None, everywhere),
        *_lower(None, config.person_day_budget_usd, own),
    ]


def _lower(operators: Limit | None, own_usd: float | None, cap: Cap) -> list[Cap]:
    """Return the cap with the lower of two limits, or none without any; raising the higher one would help nobody.

    `cap` is drawn up as the repository's own one.
    """
    own = None if own_usd is None else replace(cap, limit_micros=to_micros(own_usd))
    if operators is None or operators.micros is None:
        return [] if own is None else [own]
    theirs = replace(cap, limit_micros=operators.micros, raised_by=operators.raised_by, file_of="")
    return [theirs if own is None or theirs.limit_micros <= own.limit_micros else own]


def _start_of_day() -> datetime:
    return utc_now().replace(hour=0, minute=0, second=0, microsecond=0)


def _start_of_month() -> datetime:
    return _start_of_day().replace(day=1)


_SINCE: dict[str, Callable[[], datetime]] = {"day": _start_of_day, "month": _start_of_month}
