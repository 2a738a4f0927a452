"""Who only looks holds up nobody, and takes out no more than it needs: SQLite has one writer."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from routing.errors import RoutingError
from routing.replay_config import ReplayConfig
from store.database import Database
from tests.support.forge import MemoryForge, make_runtime
from tests.support.rows import add_attempt, add_task, settings
from workers.calibration import judged_attempts
from workers.control import latest_task
from workers.leases import Lease
from workers.outcomes import tasks_of_pull_request
from workers.replay import replay
from workers.reports import repository_ref
from workers.run import Run
from workers.runtime import Runtime
from workers.views import task_view

POOL = "models: [{name: small, litellm_id: test/small, input_usd_per_mtok: 1.0, output_usd_per_mtok: 4.0}]"


def at_the_status_comment(runtime: Runtime, task_id: int) -> None:
    task_view(runtime.database, task_id, runtime.settings, runtime.pool)


def at_the_calibration(runtime: Runtime, _task_id: int) -> None:
    judged_attempts(runtime.database)


def at_the_logged_decisions(runtime: Runtime, _task_id: int) -> None:
    with suppress(RoutingError):  # there are none that could be judged
        replay(runtime.database, runtime.settings, ReplayConfig())


def at_the_repository(runtime: Runtime, _task_id: int) -> None:
    repository_ref(runtime, 42)


def at_the_task_and_its_cost(runtime: Runtime, task_id: int) -> None:
    run = Run(runtime, Lease(runtime.database, task_id, "w", 60))
    run.task()
    run.spent_usd()


def at_the_targets_tasks(runtime: Runtime, _task_id: int) -> None:
    latest_task(runtime.database, 42, 1)
    tasks_of_pull_request(runtime.database, 42, 9)


Look = Callable[[Runtime, int], None]
LOOKS: tuple[Look, ...] = (
    at_the_status_comment,
    at_the_calibration,
    at_the_logged_decisions,
    at_the_repository,
    at_the_task_and_its_cost,
    at_the_targets_tasks,
)


@pytest.fixture
def runtime(sqlite_database: Database, tmp_path: Path) -> Runtime:
    pool = tmp_path / "models.yaml"
    pool.write_text(POOL)
    return make_runtime(sqlite_database, settings(models_file=pool), MemoryForge())


@pytest.fixture
def selected(sqlite_database: Database) -> Iterator[list[str]]:
    """What was selected, as SQL."""
    found: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if statement.startswith("SELECT"):
            found.append(statement)

    event.listen(sqlite_database.engine, "before_cursor_execute", note)
    yield found
    event.remove(sqlite_database.engine, "before_cursor_execute", note)


@pytest.mark.parametrize("look", LOOKS)
def test_a_look_waits_for_no_writer(runtime: Runtime, look: Look) -> None:
    task_id = add_task(runtime.database)
    with runtime.database.session() as writing:
        writing.connection()
        look(runtime, task_id)


@pytest.mark.parametrize("look", LOOKS)
def test_a_look_takes_out_no_trajectories(runtime: Runtime, selected: list[str], look: Look) -> None:
    task_id = add_task(runtime.database)
    add_attempt(runtime.database, task_id, trajectory={"messages": ["x" * 1000]})
    look(runtime, task_id)
    assert selected
    assert not [statement for statement in selected if "trajectory" in statement]
