"""Money: reserved before each model call, settled after it, so that no cap is ever passed.

The ledger is append-only. What counts as spent is every row that closes a reservation, plus every reservation that no
row has closed yet. Windows (day, month, in UTC) are computed from it, never kept as counters.
"""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache

import structlog
from sqlalchemy import ColumnElement, case, exists, true
from sqlalchemy.orm import aliased
from sqlmodel import Session, col, func, select

from sandbox.errors import BudgetExceeded
from store.database import Database
from store.settings import Settings
from store.states import LedgerKind, TaskState
from store.tables import Ledger, Task
from workers.caps import WARN_AT, Cap, caps_for
from workers.locks import take_turn
from workers.money import to_micros, to_usd

__all__ = [
    "Usage",
    "assume_open",
    "reserve",
    "settle",
    "spent_micros",
    "to_micros",
    "to_usd",
    "usage",
    "used_of",
    "warnings",
]

_log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Usage:
    """A cap and what counts against it now."""

    cap: Cap
    spent_micros: int

    @property
    def spent_usd(self) -> float:
        return to_usd(self.spent_micros)

    @property
    def limit_usd(self) -> float:
        return to_usd(self.cap.limit_micros)

    @property
    def used_up(self) -> bool:
        return self.spent_micros >= self.cap.limit_micros

    @property
    def warning(self) -> str | None:
        return self.cap.warning(self.spent_micros)


def usage(session: Session, settings: Settings, *, repository_id: int | None, requested_by: str) -> tuple[Usage, ...]:
    """Return what counts against each cap that a task of this person in this repository meets."""
    caps = caps_for(session, settings, repository_id=repository_id, requested_by=requested_by)
    return used_of(session, caps)


def used_of(session: Session, caps: Sequence[Cap]) -> tuple[Usage, ...]:
    """Return what counts against each of `caps`. One query for all of them: this stands before every model call."""
    starts = [cap.since() for cap in caps]
    sums = [
        func.coalesce(
            func.sum(case((_within(since) & (true() if cap.rows is None else cap.rows), Ledger.usd_micros), else_=0)), 0
        )
        for cap, since in zip(caps, starts, strict=True)
    ]
    spent = session.execute(select(*sums).where(_counts(), _within(min(starts)))).one()
    return tuple(Usage(cap, int(micros)) for cap, micros in zip(caps, spent, strict=True))


def spent_micros(
    session: Session,
    *,
    task_id: int | None = None,
    attempt_id: int | None = None,
    since: datetime | None = None,
) -> int:
    """Return what counts as spent, open reservations included, in micro-dollars.

    An open reservation counts whatever `since` is: it will be settled in the window that is open then.
    """
    query = select(func.coalesce(func.sum(Ledger.usd_micros), 0)).where(_counts())
    if task_id is not None:
        query = query.where(Ledger.task_id == task_id)
    if attempt_id is not None:
        query = query.where(Ledger.attempt_id == attempt_id)
    if since is not None:
        query = query.where(_within(since))
    return int(session.exec(query).one())


@cache
def _is_closed() -> ColumnElement[bool]:
    # Made once, like what is made of it: to make it takes longer than to ask it.
    closing = aliased(Ledger)
    return exists().where(col(closing.reservation) == col(Ledger.reservation), col(closing.closing).is_(True))


@cache
def _counts() -> ColumnElement[bool]:
    """A row that closes a reservation, or a reservation that no row has closed yet."""
    return col(Ledger.closing).is_(True) | ~_is_closed()


@cache
def _may_be_open() -> ColumnElement[bool]:
    """A reservation of a task at work.

    Not every reservation is looked at, for there may be a million and this stands before each model call.
    """
    at_work = select(Task.id).where(col(Task.state).in_([state for state in TaskState if state.is_open]))
    return col(Ledger.closing).is_(False) & col(Ledger.task_id).in_(at_work)


def _within(since: datetime) -> ColumnElement[bool]:
    """What was written since a moment, and the older reservations that may still be open."""
    return (col(Ledger.at) >= since) | _may_be_open()


def warnings(session: Session, settings: Settings, task: Task) -> tuple[str, ...]:
    """Return a sentence for each cap of a task, its own included, that is used to 80% or more."""
    assert task.id is not None
    found = []
    own, limit = spent_micros(session, task_id=task.id), to_micros(task.budget_usd)
    if limit and own >= WARN_AT * limit:
        found.append(
            f"This task's budget of ${to_usd(limit):.2f} is {own * 100 // limit}% used. "
            "`/route retry budget=USD` starts again with another one, up to the operator's ACROUTER_TASK_BUDGET_USD."
        )
    caps = usage(session, settings, repository_id=task.repository_id, requested_by=task.requested_by)
    return (*found, *(used.warning for used in caps if used.warning is not None))


def reserve(database: Database, settings: Settings, *, task_id: int, attempt_id: int, model: str, usd: float) -> str:
    """Reserve `usd` for one model call and return the reservation's id.

    Raises:
        BudgetExceeded: the task's budget or a cap would be passed; the message says which and who can raise it.
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
        for used in usage(session, settings, repository_id=task.repository_id, requested_by=task.requested_by):
            if used.spent_micros + amount > used.cap.limit_micros:
                raise BudgetExceeded(used.cap.refusal())
            _warn_when_crossed(used, amount)
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


def _warn_when_crossed(used: Usage, amount: int) -> None:
    """Tell the operator's log once when a cap gets near its end; the status comment tells it to people."""
    if used.warning is None and (words := used.cap.warning(used.spent_micros + amount)) is not None:
        _log.warning("budget.nearly_used", words=words)


def settle(database: Database, reservation: str, usd: float) -> None:
    """Close a reservation with what the call cost. A second settlement of the same one changes nothing."""
    with database.session() as session:
        take_turn(session, "ledger")
        _close(session, reservation, LedgerKind.SETTLED, to_micros(usd))


def assume_open(session: Session, task_id: int) -> int:
    """Count every open reservation of a task as spent, because the worker that could have settled it is gone.

    Returns how many there were.
    """
    take_turn(session, "ledger")
    open_rows = session.exec(
        select(Ledger).where(Ledger.task_id == task_id, col(Ledger.closing).is_(False), ~_is_closed())
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
