"""A round of a worker: what fails in it, while Docker or GitHub is down, costs nothing else its turn."""

import threading
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from typing import cast

import pytest
from celery.contrib.testing.worker import start_worker
from structlog.testing import capture_logs

from sandbox.errors import SandboxError
from sandbox.types import Backend
from store.database import Database
from tests.support.forge import NoSandboxes, make_runtime
from tests.support.rows import settings
from workers import celery_app
from workers.celery_app import CeleryQueue, make_celery
from workers.jobs import WorkerJobs
from workers.runtime import Runtime, Worker


class DaemonDown(NoSandboxes):
    def remove_leftovers(self, running_tasks: Callable[[], frozenset[str]]) -> int:
        raise SandboxError("Cannot list the sandboxes: no daemon answers.")


def in_need(runtime: Runtime) -> None:
    raise ValueError(f"{runtime.name} has no network")


def handled(delivery_id: int) -> None:
    raise AssertionError(f"delivery {delivery_id} is not asked for")


@pytest.fixture
def runtime(sqlite_database: Database) -> Runtime:
    return make_runtime(sqlite_database, settings())


def test_a_sandbox_daemon_that_is_down_keeps_nothing_else_from_being_done(sqlite_database: Database) -> None:
    runtime = make_runtime(sqlite_database, settings(), backend=cast("Backend", DaemonDown()))
    done: list[str] = []
    with capture_logs() as logs:
        WorkerJobs(Worker(runtime, handled, [lambda: done.append("chore")])).reconcile()
    assert done == ["chore"]
    assert [(entry["event"], entry["log_level"]) for entry in logs] == [("reconcile.leftovers_kept", "warning")]


def test_a_chore_that_fails_is_named_and_the_next_one_is_done(runtime: Runtime) -> None:
    done: list[str] = []
    with capture_logs() as logs:
        WorkerJobs(Worker(runtime, handled, [partial(in_need, runtime), lambda: done.append("chore")])).reconcile()
    assert done == ["chore"]
    assert [(entry["event"], entry["chore"]) for entry in logs] == [("chore.failed", "in_need")]


def test_a_broker_that_is_away_loses_a_wake_up_and_nothing_else() -> None:
    queue = CeleryQueue(make_celery("redis://127.0.0.1:1/0", 15))
    with capture_logs() as logs:
        queue.work(7)
    assert [(entry["event"], entry["job"], entry["number"]) for entry in logs] == [
        ("queue.unreachable", "acrouter.work", 7)
    ]


class Held(WorkerJobs):
    """Works on a task for as long as the test wants."""

    begun: "SimpleQueue[int]" = SimpleQueue()
    go_on = threading.Event()

    def work(self, task_id: int) -> None:
        self.begun.put(task_id)
        assert self.go_on.wait(30)


def test_tasks_that_wait_hold_up_no_delivery_and_are_worked_on_in_turn(
    runtime: Runtime, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A `/route stop` among them, and the round that looks for lost tasks."""
    monkeypatch.setattr(celery_app, "_current", [])
    delivered: SimpleQueue[int] = SimpleQueue()

    def deliver(delivery_id: int) -> None:
        delivered.put(delivery_id)

    jobs = Held(Worker(runtime, deliver))
    app = make_celery(redis_url, 15)
    celery_app.use(jobs, tasks_at_once=1)
    queue = CeleryQueue(app)
    with start_worker(app, pool="threads", concurrency=2, perform_ping_check=False, shutdown_timeout=30):
        for task_id in (1, 2, 3):
            queue.work(task_id)
        assert jobs.begun.get(timeout=30) == 1
        queue.deliver(4)
        assert delivered.get(timeout=10) == 4
        jobs.go_on.set()
        assert [jobs.begun.get(timeout=30) for _ in range(2)] == [2, 3]
        celery_app._current.clear()
