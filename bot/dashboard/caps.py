"""Every cap with what counts against it: of the installation, and of organisations, repositories and people."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from sqlalchemy import exists
from sqlalchemy.orm import aliased
from sqlmodel import Session, col, func, select

from bot.dashboard.facts import DAY_S, NO_REPOSITORY, Facts
from bot.dashboard.roles import Viewer
from store.states import TaskState
from store.tables import Installation, Ledger, Repository, Task
from store.types import utc_now
from workers.caps import Cap, installation_caps, organisation_caps, person_caps, repository_caps
from workers.configuration import kept_of_all
from workers.limits import Limit
from workers.money import to_usd

Scope = Literal["all", "organisation", "repository", "person"]
MOST_CAPS = 60
"""Caps shown of organisations, repositories and people, those that are used most first."""


@dataclass(frozen=True)
class CapView:
    scope: Scope
    whose: str
    """The organisation, repository or login; empty for all tasks together."""
    name: str
    """`day` or `month`."""
    limit_usd: float
    used_usd: float
    """Settled, assumed and reserved."""
    reserved_usd: float
    raised_by: str
    """A sentence: who can raise it, and where."""
    file_of: str = ""
    """The repository whose .acrouter.yml says so; empty where the operator does."""

    @property
    def share(self) -> float:
        """Used of the limit, at most 1."""
        return min(1.0, self.used_usd / self.limit_usd)


@dataclass(frozen=True)
class Reserved:
    """Micro-dollars of the calls that are under way, by task."""

    tasks: Mapping[int, int] = field(default_factory=dict)
    repositories: Mapping[int, int] = field(default_factory=dict)
    persons: Mapping[tuple[str, int], int] = field(default_factory=dict)
    """By who asked, and where."""

    @property
    def all(self) -> int:
        return sum(self.tasks.values())


def reservations(session: Session) -> Reserved:
    """Return what the calls under way could cost. Only a task that is open can have one."""
    closing = aliased(Ledger)
    is_closed = exists().where(col(closing.reservation) == col(Ledger.reservation), col(closing.closing).is_(True))
    at_work = select(Task.id).where(col(Task.state).in_([state for state in TaskState if state.is_open]))
    query = (
        select(Task.id, Task.repository_id, Task.requested_by, Ledger.usd_micros)
        .join(Ledger, col(Ledger.task_id) == col(Task.id))
        .where(col(Ledger.task_id).in_(at_work), col(Ledger.closing).is_(False), ~is_closed)
    )
    tasks: defaultdict[int, int] = defaultdict(int)
    repositories: defaultdict[int, int] = defaultdict(int)
    persons: defaultdict[tuple[str, int], int] = defaultdict(int)
    for task, repository, person, micros in session.exec(query).all():
        where = NO_REPOSITORY if repository is None else repository
        tasks[task or 0] += micros
        repositories[where] += micros
        persons[person, where] += micros
    return Reserved(tasks, repositories, persons)


def caps(facts: Facts, limits: Mapping[str, Limit], reserved: Reserved) -> list[CapView]:
    """Return the installation's caps. `facts` must be those of the whole installation."""
    return [
        _view("all", "", cap, sum(_settled(facts, cap).values()), reserved.all) for cap in installation_caps(limits)
    ]


def limited(
    session: Session, facts: Facts, limits: Mapping[str, Limit], viewer: Viewer, reserved: Reserved
) -> list[CapView]:
    """Return the caps of organisations, repositories and people that a viewer may know of, the most used first.

    `facts` must be those of the whole installation. Three queries, however many caps there are.
    """
    with_accounts = session.exec(
        select(Repository, Installation.account)
        .join(Installation, col(Installation.id) == col(Repository.installation_id))
        .order_by(col(Repository.full_name))
    ).all()
    every = [row for row, _ in with_accounts]
    configs = kept_of_all(session, every)
    installed: defaultdict[int, set[int]] = defaultdict(set)
    owned: defaultdict[str, set[int]] = defaultdict(set)
    for row, account in with_accounts:
        installed[row.installation_id].add(row.id)
        owned[account.lower()].add(row.id)
    paid = _paid_today(session, facts)
    people: defaultdict[int, set[str]] = defaultdict(set)
    for login, where in (*paid, *reserved.persons):
        people[where].add(login)
    settled: dict[str, dict[int, int]] = {}
    views: dict[tuple[str, str, str], CapView] = {}

    def add(scope: Scope, whose: str, cap: Cap, repositories: Iterable[int]) -> None:
        if cap.name not in settled:
            settled[cap.name] = _settled(facts, cap)
        known = views.get((scope, whose, cap.name))
        # Two installations of one organisation may know different files: of two limits the lower is told.
        if known is None or to_usd(cap.limit_micros) < known.limit_usd:
            spent, held = _over(settled[cap.name], repositories), _over(reserved.repositories, repositories)
            views[scope, whose, cap.name] = _view(scope, whose, cap, spent, held)

    def add_person(login: str, row: Repository, cap: Cap) -> None:
        whose = f"{login} in {row.full_name}" if cap.file_of else login
        spent, held = (
            sum(usd for (who, where), usd in sums.items() if who == login and (not cap.file_of or where == row.id))
            for sums in (paid, reserved.persons)
        )
        views["person", whose, cap.name] = _view("person", whose, cap, spent, held)

    for row in every:
        if not (row.active and viewer.can_read(row.id)):
            continue
        config = configs[row.id]
        owner = row.full_name.split("/", 1)[0]
        for cap in organisation_caps(limits, config, row):
            add("organisation", owner, cap, installed[row.installation_id] | owned[owner.lower()])
        for cap in repository_caps(limits, config, row):
            add("repository", row.full_name, cap, [row.id])
        for login in people[row.id] - {""}:
            for cap in person_caps(limits, config, row, login):
                add_person(login, row, cap)
    return sorted(views.values(), key=lambda one: (-one.share, one.scope, one.whose, one.name))


def _view(scope: Scope, whose: str, cap: Cap, settled: int, reserved: int) -> CapView:
    return CapView(
        scope=scope,
        whose=whose,
        name=cap.name,
        limit_usd=to_usd(cap.limit_micros),
        used_usd=to_usd(settled + reserved),
        reserved_usd=to_usd(reserved),
        raised_by=cap.raised_by,
        file_of=cap.file_of,
    )


def _settled(facts: Facts, cap: Cap) -> dict[int, int]:
    """Return what was settled or assumed since a cap's day or month began, in micro-dollars, by repository."""
    recent = facts.spend.day >= int(cap.since().timestamp() // DAY_S)
    identities, places = np.unique(facts.spend.repository[recent], return_inverse=True)
    sums = np.bincount(places, weights=facts.spend.micros[recent], minlength=len(identities))
    return dict(zip(identities.tolist(), sums.astype(np.int64).tolist(), strict=True))


def _over(sums: Mapping[int, int], repositories: Iterable[int]) -> int:
    return sum(sums.get(one, 0) for one in repositories)


def _paid_today(session: Session, facts: Facts) -> dict[tuple[str, int], int]:
    """Return today's micro-dollars by who asked, and where. Who asked is in the facts: the ledger's index is enough."""
    today = utc_now().replace(hour=0, minute=0, second=0, microsecond=0)
    rows = session.exec(
        select(func.min(Ledger.task_id), func.sum(Ledger.usd_micros))
        .where(col(Ledger.closing).is_(True), col(Ledger.at) >= today)
        # Not by the plain column: SQLite would walk through its index, which is the whole ledger.
        .group_by(col(Ledger.task_id) + 0)
    ).all()
    paid: defaultdict[tuple[str, int], int] = defaultdict(int)
    places = np.searchsorted(facts.tasks.id, np.array([task for task, _ in rows], dtype=np.int64))
    for (task, micros), place in zip(rows, places.tolist(), strict=True):
        if place < len(facts.tasks) and facts.tasks.id[place] == task:
            person = facts.persons.names[int(facts.tasks.person[place])]
            paid[person, int(facts.tasks.repository[place])] += int(micros)
    return dict(paid)
