"""Every change of a task's state is a row in an append-only history, written in the same transaction."""

from typing import Any

import structlog
from sqlalchemy import event
from sqlmodel import Session

from store.scrub import scrub, scrub_json
from store.states import TaskState
from store.tables import History, Task
from store.types import utc_now

_log = structlog.get_logger(__name__)


def record(session: Session, task: Task, state: TaskState, message: str, **data: Any) -> None:
    """Put `task` into `state` and append what happened. The target's words become due for an update.

    `message` is a sentence for people; `data` are facts for the dashboard and the tests.
    """
    now = utc_now()
    if state != task.state:
        _log_once_committed(session, task, state)
        if not state.is_open:
            task.finished_at = task.finished_at or now
            task.waiting_since = None
    message = _clean(message)
    task.state = state
    task.reason = message
    task.updated_at = now
    task.report_due = True
    session.add(task)
    assert task.id is not None
    session.add(History(task_id=task.id, at=now, state=state, message=message, data=scrub_json(data)))


def note(session: Session, task: Task, message: str, **data: Any) -> None:
    """Append a step worth telling that leaves the task's state as it is."""
    assert task.id is not None
    session.add(History(task_id=task.id, state=task.state, message=_clean(message), data=scrub_json(data)))


def _log_once_committed(session: Session, task: Task, state: TaskState) -> None:
    told = {"task_id": task.id, "state": state.value, "before": task.state.value}
    event.listen(session, "after_commit", lambda _: _log.info("task.state", **told), once=True)


def _clean(message: str) -> str:
    """No secret may stay, and Postgres takes no NUL."""
    return scrub(message).replace("\x00", "")
