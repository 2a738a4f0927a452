"""Watches a task through the database, as the dashboard does, and prints its history as it grows."""

import time

from rich.console import Console
from rich.markup import escape
from sqlmodel import col, select

from bot.demo.errors import StoryError
from store.database import Database
from store.states import TaskState
from store.tables import History, Task
from templates.escape import plain

_POLL_S = 0.2


def follow(console: Console, database: Database, issue: int, *, timeout_s: float) -> int:
    """Print the history of the task on an issue until acrouter has done its part, and return the task's id.

    Raises:
        StoryError: no task was started, or it did not end in time.
    """
    seen = 0
    deadline = time.monotonic() + timeout_s
    with console.status("waiting for the webhook") as status:
        while time.monotonic() < deadline:
            task = _task_on(database, issue)
            if task is None:
                time.sleep(_POLL_S)
                continue
            assert task.id is not None
            for row in _history_after(database, task.id, seen):
                console.print(f"[cyan]{row.state.value:>10}[/]  {escape(plain(row.message))}", highlight=False)
                seen = row.id or seen
            if not task.state.is_open:
                return task.id
            status.update(task.state.value)
            time.sleep(_POLL_S)
    raise StoryError(f"Issue {issue}: acrouter was not done after {timeout_s:.0f} s.")


def wait_for_state(database: Database, task_id: int, state: TaskState, *, timeout_s: float) -> None:
    """Wait until a task is in a state.

    Raises:
        StoryError: it did not get there in time.
    """
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        with database.session() as session:
            reached = session.get_one(Task, task_id).state
        if reached is state:
            return
        time.sleep(_POLL_S)
    raise StoryError(f"Task {task_id} is {reached.value} and not {state.value} after {timeout_s:.0f} s.")


def _task_on(database: Database, issue: int) -> Task | None:
    with database.session() as session:
        return session.exec(select(Task).where(Task.target_number == issue).order_by(col(Task.id).desc())).first()


def _history_after(database: Database, task_id: int, seen: int) -> list[History]:
    with database.session() as session:
        query = select(History).where(History.task_id == task_id, col(History.id) > seen).order_by(col(History.id))
        return list(session.exec(query).all())
