"""Every change of a task's state is a row in an append-only history, written in the same transaction."""

from typing import Any

from sqlmodel import Session

from store.scrub import scrub, scrub_json
from store.states import TaskState
from store.tables import History, Task
from store.types import utc_now


def record(session: Session, task: Task, state: TaskState, message: str, **data: Any) -> None:
    """Put `task` into `state` and append what happened. The target's words become due for an update.

    `message` is a sentence for people; `data` are facts for the dashboard and the tests.
    """
    now = utc_now()
    if state != task.state and not state.is_open:
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


def _clean(message: str) -> str:
    """No secret may stay, and Postgres takes no NUL."""
    return scrub(message).replace("\x00", "")
