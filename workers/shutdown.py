"""The end of a process: what it holds goes back to the queue at once, whatever its threads are waiting for."""

import structlog
from sqlmodel import select

from store.states import TaskState
from store.tables import Task
from workers import leases
from workers.history import record
from workers.interrupted import write_off
from workers.reports import try_report
from workers.run import SHUTTING_DOWN
from workers.runtime import Runtime

_log = structlog.get_logger(__name__)

GRACE_S = 3.0
"""What runs may end its step by itself for so long, e.g. open the PR that it is about to open."""


def hand_back(runtime: Runtime) -> int:
    """Put every task that this process holds back into the queue and return how many there were.

    The threads that work on them find their leases gone before they write anything more. Their sandboxes are removed,
    and a model call that is under way counts as paid for.
    """
    runtime.stopping.set()
    with runtime.database.session() as session:
        held = session.exec(select(Task.id).where(leases.is_held_by(runtime.name))).all()
    given = [task_id for task_id in held if task_id is not None and _give(runtime, task_id)]
    for task_id in given:
        _log.info("task.handed_back", task_id=task_id)
        runtime.backend.remove_task(str(task_id))
        try_report(runtime, task_id)
    return len(given)


def _give(runtime: Runtime, task_id: int) -> bool:
    with runtime.database.session() as session:
        task = session.exec(
            select(Task).where(Task.id == task_id, leases.is_held_by(runtime.name)).with_for_update(key_share=True)
        ).one_or_none()
        if task is None or not task.state.is_open:
            return False
        write_off(session, task)
        task.lease_owner, task.lease_until = "", None
        task.tries -= 1  # the task is not to blame for a shutdown
        if task.stop_requested_by:
            record(session, task, TaskState.STOPPED, f"Stopped by {task.stop_requested_by}.")
        else:
            record(session, task, TaskState.QUEUED, SHUTTING_DOWN)
    return True
