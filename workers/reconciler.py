"""Brings back what was lost: the database is read for work that nobody holds, whatever the queue has forgotten."""

from datetime import timedelta

import structlog
from sqlmodel import Session, and_, col, or_, select

from sandbox.errors import SandboxError
from store.states import DeliveryState, TaskKind, TaskState
from store.tables import Delivery, Heartbeat, Task
from store.types import utc_now
from store.upsert import put
from workers.history import record
from workers.interrupted import write_off
from workers.pipeline import MAX_TRIES
from workers.reports import try_report
from workers.runtime import Runtime

_log = structlog.get_logger(__name__)
# A wake-up that is under way is not lost: younger rows are left to it.
_GRACE = timedelta(seconds=5)
_BATCH = 100


def reconcile(runtime: Runtime) -> None:
    """Wake what waits, take back what dead workers held, and write what people have not been told."""
    _beat(runtime)
    revive_lost_tasks(runtime)
    for delivery_id in _forgotten_deliveries(runtime):
        runtime.queue.deliver(delivery_id)
    for task_id in _waiting_tasks(runtime):
        runtime.queue.work(task_id)
    for task_id in _unreported_tasks(runtime):
        try_report(runtime, task_id)
    _remove_leftovers(runtime)


def _remove_leftovers(runtime: Runtime) -> None:
    try:
        removed = runtime.backend.remove_leftovers(lambda: _running_tasks(runtime))
    except SandboxError as error:  # what GitHub could not tell is asked for all the same
        _log.warning("reconcile.leftovers_kept", error=str(error))
        return
    if removed:
        _log.info("reconcile.leftovers_removed", count=removed)


def _beat(runtime: Runtime) -> None:
    with runtime.database.session() as session:
        put(session, Heartbeat(name=runtime.name, role="worker", seen_at=utc_now()), changing=("seen_at",))


def revive_lost_tasks(runtime: Runtime) -> None:
    """A task whose lease ran out goes back to the queue; one that keeps killing its worker is given up.

    Where the worker was lost after the task's end and before it let go, only the lease ends: the end is to be told.
    """
    now = utc_now()
    running = col(Task.state).in_([state for state in TaskState if state.is_running])
    with runtime.database.session() as session:
        lost = session.exec(
            select(Task)
            .where(
                or_(
                    # Both ways at once: SQLite would look through all that never had a lease, or no longer have it.
                    and_(running, or_(col(Task.lease_until).is_(None), col(Task.lease_until) < now)),
                    col(Task.lease_until) < now,
                )
            )
            .with_for_update(skip_locked=True, key_share=True)
        ).all()
        for task in lost:
            _revive(session, task)


def _revive(session: Session, task: Task) -> None:
    _log.warning("reconcile.task_lost", task_id=task.id, owner=task.lease_owner, tries=task.tries)
    task.lease_owner = ""
    task.lease_until = None
    if not task.state.is_open:
        write_off(session, task)
    elif task.kind is TaskKind.LOCAL:
        write_off(session, task)
        record(session, task, TaskState.FAILED, "The command that worked on it was interrupted.")
    elif task.stop_requested_by:
        write_off(session, task)
        record(session, task, TaskState.STOPPED, f"Stopped by {task.stop_requested_by}.")
    elif task.tries >= MAX_TRIES:
        write_off(session, task)
        record(session, task, TaskState.FAILED, f"Given up: {task.tries} workers were lost while they worked on it.")
    else:
        record(session, task, TaskState.QUEUED, "The worker was lost; the task waits for the next one.")


def _forgotten_deliveries(runtime: Runtime) -> list[int]:
    now = utc_now()
    with runtime.database.reading() as session:
        found = session.exec(
            select(Delivery.id)
            .where(
                Delivery.state == DeliveryState.RECEIVED,
                col(Delivery.received_at) < now - _GRACE,
                or_(col(Delivery.not_before).is_(None), col(Delivery.not_before) <= now),
            )
            .order_by(col(Delivery.id))
            .limit(_BATCH)
        ).all()
    return [row for row in found if row is not None]


def _waiting_tasks(runtime: Runtime) -> list[int]:
    now = utc_now()
    with runtime.database.reading() as session:
        found = session.exec(
            select(Task.id)
            .where(
                Task.state == TaskState.QUEUED,
                Task.kind != TaskKind.LOCAL,
                or_(col(Task.lease_owner) == "", col(Task.lease_until) < now),
                or_(col(Task.not_before).is_(None), col(Task.not_before) <= now),
            )
            .order_by(col(Task.id))
            .limit(_BATCH)
        ).all()
    return [row for row in found if row is not None]


def _unreported_tasks(runtime: Runtime) -> list[int]:
    """Tasks that nobody works on, and whose target shows an older state."""
    now = utc_now()
    with runtime.database.reading() as session:
        found = session.exec(
            select(Task.id)
            .where(
                col(Task.report_due).is_(True),
                col(Task.state).in_([state for state in TaskState if not state.is_running]),
                col(Task.lease_owner) == "",
                col(Task.updated_at) < now - _GRACE,
                or_(col(Task.report_not_before).is_(None), col(Task.report_not_before) <= now),
            )
            .order_by(col(Task.id))
            .limit(_BATCH)
        ).all()
    return [row for row in found if row is not None]


def _running_tasks(runtime: Runtime) -> frozenset[str]:
    with runtime.database.reading() as session:
        # As `lease_owner` would say too, but this has an index.
        found = session.exec(select(Task.id).where(col(Task.lease_until).is_not(None))).all()
    return frozenset(str(row) for row in found)
