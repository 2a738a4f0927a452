"""What the machinery is doing: the queue, the workers, what failed and can be tried again."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import numpy as np
from sqlalchemy import select as select_columns
from sqlalchemy.orm import defer
from sqlmodel import Session, col, func, select

from bot.dashboard import verdicts
from bot.dashboard.facts import TASK_STATES, Facts, present
from bot.dashboard.roles import Role, Viewer
from store.database import Database
from store.settings import Settings
from store.states import DeliveryState, TaskState
from store.tables import Attempt, AuditEntry, Delivery, Heartbeat, ModelEndpoint, Task
from store.types import utc_now
from workers.breakers import passed_over_until
from workers.history import record
from workers.intake import open_task_on

_ALIVE_FOR = timedelta(minutes=2)
_FORGOTTEN_AFTER = timedelta(days=1)
_MOST = 50
_ENDPOINT_WINDOW_S = 86_400.0


@dataclass(frozen=True)
class Waiting:
    """Tasks that wait or are worked on."""

    id: int
    title: str
    state: TaskState
    repository_id: int | None
    since: datetime
    not_before: datetime | None
    worker: str
    waiting_since: datetime | None
    """For something outside: GitHub, or the models' endpoints."""
    reason: str


@dataclass(frozen=True)
class WorkerView:
    name: str
    role: str
    seen_at: datetime
    alive: bool


@dataclass(frozen=True)
class EndpointView:
    """One model's endpoint within the last day."""

    model: str
    attempts: int
    unusable: int
    failed: int = 0
    """Id of the last attempt that could not use it; 0 where there is none."""
    failed_at: float = 0.0
    """When that began, in seconds since 1970."""
    error: str = ""
    failures: int = 0
    """In a row, up to now."""
    retry_at: datetime | None = None
    """The router passes the model over until then; None: it does not."""


@dataclass(frozen=True)
class Health:
    states: dict[str, int]
    """Open tasks by state."""
    tasks: Sequence[Waiting]
    lag_s: float
    """How long the oldest task has waited that could be worked on; 0 where none waits."""
    deliveries: dict[str, int]
    """Of the last day, by state."""
    workers: Sequence[WorkerView]
    endpoints: Sequence[EndpointView]
    breakers: Sequence[tuple[str, int]]
    """Targets at which no more tasks start for now, with the tasks of the last 24 hours."""
    failed_deliveries: Sequence[Delivery]
    failed_tasks: Sequence[Waiting]


def health(session: Session, facts: Facts, viewer: Viewer, settings: Settings) -> Health:
    """Return how the machinery stands; tasks only of repositories that the viewer can read."""
    now = utc_now()
    open_states = [code for code, state in enumerate(TASK_STATES) if state.is_open]
    open_tasks = _tasks(session, facts, open_states, newest=False)
    ready = [one.since for one in open_tasks if one.state is TaskState.QUEUED and (one.not_before or now) <= now]
    counts = session.exec(
        select(Delivery.state, func.count())
        .where(col(Delivery.received_at) >= now - timedelta(days=1))
        .group_by(col(Delivery.state))
    ).all()
    beats = session.exec(
        select(Heartbeat).where(col(Heartbeat.seen_at) >= now - _FORGOTTEN_AFTER).order_by(col(Heartbeat.name))
    ).all()
    here = facts.tasks.state[np.isin(facts.tasks.state, open_states)]
    return Health(
        states={str(TASK_STATES[code]): int((here == code).sum()) for code in open_states},
        tasks=open_tasks,
        lag_s=(now - min(ready)).total_seconds() if ready else 0.0,
        deliveries={str(state): count for state, count in counts},
        workers=[WorkerView(one.name, one.role, one.seen_at, now - one.seen_at < _ALIVE_FOR) for one in beats],
        endpoints=with_breakers(session, _with_errors(session, endpoints(facts, now.timestamp())), viewer),
        breakers=_breakers(session, facts, viewer, settings, now),
        failed_deliveries=_failed_deliveries(session, viewer),
        failed_tasks=_tasks(session, facts, [TASK_STATES.index(TaskState.FAILED)], newest=True),
    )


def endpoints(facts: Facts, now: float) -> list[EndpointView]:
    """Return how often each model could not be used within the last day."""
    recent = facts.attempts.started >= now - _ENDPOINT_WINDOW_S
    unusable = verdicts.unusable_attempts(facts)
    found = []
    for code in present(facts.attempts.model[recent]):
        mine = recent & (facts.attempts.model == code)
        failed = np.flatnonzero(mine & unusable)
        view = EndpointView(facts.models.names[int(code)], int(mine.sum()), len(failed))
        if len(failed):
            last = failed[facts.attempts.started[failed].argmax()]
            view = replace(view, failed=int(facts.attempts.id[last]), failed_at=float(facts.attempts.started[last]))
        found.append(view)
    return found


def _with_errors(session: Session, found: Sequence[EndpointView]) -> list[EndpointView]:
    """Add what the last attempts that could not use their model said."""
    query = select(Attempt.id, func.substr(Attempt.error, 1, 400)).where(
        col(Attempt.id).in_([one.failed for one in found if one.failed])
    )
    errors = dict(session.exec(query).all())
    return [replace(one, error=errors.get(one.failed, "")) for one in found]


def with_breakers(session: Session, found: Sequence[EndpointView], viewer: Viewer) -> list[EndpointView]:
    """Return endpoints with their breakers; one that nobody tried within the day is added where its breaker is open.

    What an endpoint said last it may have said of any repository's task: that is for those who may see all of them.
    """
    now, sees_all = utc_now(), viewer.repositories is None or viewer.may(Role.OPERATOR)
    rows = {row.model: row for row in session.exec(select(ModelEndpoint)).all()}
    until = {model: passed_over_until(row, now) for model, row in rows.items()}
    known = {one.model for one in found}
    idle = [EndpointView(model, 0, 0) for model, moment in until.items() if model not in known and moment is not None]
    return [
        replace(
            one,
            failures=row.failures,
            retry_at=until[one.model],
            error=one.error or (row.error if sees_all else ""),
        )
        if (row := rows.get(one.model))
        else one
        for one in (*found, *idle)
    ]


def retry_delivery(database: Database, delivery_id: int, *, by: str) -> bool:
    """Put a failed delivery back into the inbox; returns whether it was one. The caller wakes a worker."""
    with database.session() as session:
        row = session.exec(select(Delivery).where(Delivery.id == delivery_id).with_for_update()).first()
        if row is None or row.state is not DeliveryState.FAILED:
            return False
        row.state, row.tries, row.not_before, row.reason = DeliveryState.RECEIVED, 0, None, ""
        session.add(row)
        session.add(AuditEntry(actor=by, action="delivery retried", target=row.guid))
    return True


def retry_task(database: Database, task_id: int, viewer: Viewer) -> bool:
    """Put a failed task back into the queue; returns whether it was one that the viewer can read.

    It goes on from what it has: attempts that were judged count, and what was spent counts against its budget.
    """
    with database.session() as session:
        target = session.exec(select(Task.target).where(Task.id == task_id)).first()
        if target is None or open_task_on(session, target) is not None:
            return False
        task = session.exec(select(Task).where(Task.id == task_id).with_for_update(key_share=True)).one()
        if task.state is not TaskState.FAILED or not viewer.can_read(task.repository_id):
            return False
        task.tries, task.not_before, task.waiting_since = 0, None, None  # its wait is over, and a new one may begin
        task.finished_at, task.stop_requested_by = None, ""
        record(session, task, TaskState.QUEUED, f"{viewer.login} asked for another try on the dashboard.")
        session.add(AuditEntry(actor=viewer.login, action="task retried", target=str(task_id)))
    return True


def _tasks(session: Session, facts: Facts, states: Sequence[int], *, newest: bool) -> list[Waiting]:
    """Return tasks in some states, found in the facts: a database would read half of the table for a page of them."""
    found = facts.tasks.id[np.isin(facts.tasks.state, states)]
    ids = (found[::-1] if newest else found)[:_MOST].tolist()
    if not ids:
        return []
    columns: Sequence[Any] = (
        *(Task.id, func.substr(Task.title, 1, 200), Task.state, Task.repository_id),
        *(Task.created_at, Task.not_before, Task.lease_owner, Task.waiting_since, func.substr(Task.reason, 1, 400)),
    )
    query = select_columns(*columns).where(col(Task.id).in_(ids))
    order = col(Task.id).desc() if newest else col(Task.id)
    return [Waiting(*row) for row in session.execute(query.order_by(order)).all()]


def _failed_deliveries(session: Session, viewer: Viewer) -> Sequence[Delivery]:
    """A delivery names no repository that could be checked: only who sees everything, or may act, sees them."""
    if viewer.repositories is not None and not viewer.may(Role.OPERATOR):
        return []
    return session.exec(
        select(Delivery)
        .options(defer(Delivery.payload))  # type: ignore[arg-type]
        .where(Delivery.state == DeliveryState.FAILED)
        .order_by(col(Delivery.id).desc())
        .limit(_MOST)
    ).all()


def _breakers(
    session: Session, facts: Facts, viewer: Viewer, settings: Settings, now: datetime
) -> list[tuple[str, int]]:
    count = func.count()
    young = facts.tasks.id[facts.tasks.created >= now.timestamp() - _ENDPOINT_WINDOW_S]
    if not len(young):
        return []
    first = int(young[0])
    target = func.min(Task.target)
    query = (
        select(target, count)
        .where(col(Task.id) >= first, col(Task.created_at) >= now - timedelta(days=1))
        # Not by the plain column: SQLite would walk through its index, which is all tasks.
        .group_by(col(Task.target).concat(""))
        .having(count >= settings.max_tasks_per_target)
        .order_by(count.desc())
        .limit(_MOST)
    )
    if viewer.repositories is not None:
        query = query.where(col(Task.repository_id).in_(viewer.repositories))
    return [(target, number) for target, number in session.exec(query).all()]
