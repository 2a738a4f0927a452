"""Waits for what acrouter does with a task, by its database."""

import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from bench.errors import BenchError
from store.states import TaskState

_TIMEOUT_S = 300.0
_POLL_S = 0.01
_QUERY = """
SELECT task.state, task.report_due, task.lease_owner, task.reason
FROM task JOIN repository ON repository.id = task.repository_id
WHERE repository.full_name = ? AND task.target_number = ?
"""


def wait_for_task(
    database: Path, repository: str, issue: int, state: TaskState, *, look: Callable[[], None] = lambda: None
) -> float:
    """Wait until the task on an issue is in a state, reported and let go of; return when, in seconds since the epoch.

    `look` is called now and then, and ends the waiting by raising an error.

    Raises:
        BenchError: the task ended without a PR, or is not there in time.
    """
    # Past the engine, whose transactions take SQLite's write lock: looking must not hold the work up.
    deadline = time.monotonic() + _TIMEOUT_S
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        while time.monotonic() < deadline:
            row = connection.execute(_QUERY, (repository, issue)).fetchone()
            now = time.time()
            if row is not None:
                found = TaskState(row[0])
                if found is state and not row[1] and not row[2]:
                    return now
                if not found.is_open and found not in {TaskState.PUBLISHED, state}:
                    raise BenchError(
                        f"The task on issue {issue} of {repository} ended without a PR ({found.value}): {row[3]}"
                    )
            look()
            time.sleep(_POLL_S)
    raise BenchError(f"The task on issue {issue} of {repository} was not {state.value} after {_TIMEOUT_S:.0f} s.")
