"""A person's stop reaches a task that waits for something outside, however long it still would."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from store.database import Database
from store.states import TaskState
from store.tables import Task
from store.types import utc_now
from tests.support.forge import make_runtime
from tests.support.rows import QueueOfNames, add_task, settings
from workers import leases
from workers.control import request_stop
from workers.errors import ForgeTemporary
from workers.intake import open_task_on
from workers.pipeline import work_on
from workers.run import Run
from workers.runtime import Runtime


@pytest.fixture
def runtime(database: Database) -> Runtime:
    return make_runtime(database, settings())


def stop(database: Database) -> None:
    assert request_stop(database, QueueOfNames(), 42, 1, "ada") is not None


def row(runtime: Runtime, task_id: int) -> Task:
    with runtime.database.session() as session:
        return session.get_one(Task, task_id)


class Away:
    """A target at a GitHub that asks to wait for an hour; meanwhile something happens."""

    def __init__(self, meanwhile: Callable[[], None]) -> None:
        self._meanwhile = meanwhile

    def adopt(self, run: Run) -> bool:
        self._meanwhile()
        raise ForgeTemporary("GitHub could not read issue 1.", utc_now() + timedelta(hours=1))


def test_a_stop_while_github_is_asked_in_vain_is_not_put_off_until_it_answers(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    task_id = add_task(runtime.database)
    monkeypatch.setattr("workers.pipeline.target_of", lambda _run: Away(lambda: stop(runtime.database)))
    work_on(runtime, task_id)
    task = row(runtime, task_id)
    assert (task.state, task.reason) == (TaskState.STOPPED, "Stopped by ada.")
    with runtime.database.session() as session:
        assert open_task_on(session, "42/issues/1") is None, "another one may begin"


def test_a_stop_of_a_task_that_its_worker_is_about_to_let_go_is_seen_by_the_next_one(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    task_id = add_task(runtime.database)
    monkeypatch.setattr("workers.pipeline.target_of", lambda _run: Away(lambda: None))
    let_go = leases.Lease.__exit__

    def stop_and_let_go(lease: leases.Lease, *error: object) -> None:
        stop(runtime.database)
        let_go(lease, *error)  # type: ignore[arg-type]

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(leases.Lease, "__exit__", stop_and_let_go)
        work_on(runtime, task_id)
    work_on(runtime, task_id)  # as the reconciler asks for
    assert row(runtime, task_id).state is TaskState.STOPPED
