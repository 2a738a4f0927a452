"""A person's stop ends a set-up or a verification at once, and what came of it is no verdict."""

import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import cast

import pytest

from sandbox.errors import SandboxError
from sandbox.types import Backend
from store.database import Database
from store.tables import Task
from tests.support.forge import NoSandboxes, make_runtime
from tests.support.rows import add_task, settings
from workers import leases
from workers.run import Run, StoppedByPerson
from workers.stop_watch import ended_by_a_stop

SOON_S = 0.01


class OneSandbox(NoSandboxes):
    """Its one sandbox works until it is removed."""

    def __init__(self) -> None:
        super().__init__()
        self.gone = threading.Event()

    def work(self) -> None:
        assert self.gone.wait(30), "nobody has removed it"
        raise SandboxError("The sandbox is gone.")

    def remove_task(self, task: str) -> int:
        self.gone.set()
        return super().remove_task(task)


@pytest.fixture
def backend() -> OneSandbox:
    return OneSandbox()


@pytest.fixture
def run(database: Database, backend: OneSandbox) -> Iterator[Run]:
    lease = leases.take(database, add_task(database), "worker", 60)
    assert lease is not None
    with lease:
        yield Run(replace(make_runtime(database, settings()), backend=cast("Backend", backend)), lease)


def stop(run: Run) -> None:
    with run.runtime.database.session() as session:
        session.get_one(Task, run.task_id).stop_requested_by = "ada"


def test_the_sandbox_of_a_set_up_is_removed_when_a_person_asks_for_the_end(run: Run, backend: OneSandbox) -> None:
    threading.Timer(0.1, stop, [run]).start()
    with pytest.raises(StoppedByPerson, match=r"Stopped by ada\."), ended_by_a_stop(run, every_s=SOON_S):
        backend.work()
    assert set(backend.removed) == {str(run.task_id)}


def test_what_was_measured_while_a_person_asked_for_the_end_is_no_verdict(run: Run) -> None:
    with pytest.raises(StoppedByPerson), ended_by_a_stop(run, every_s=60):
        stop(run)


def test_a_sandbox_that_is_lost_by_itself_is_told_as_that(run: Run, backend: OneSandbox) -> None:
    backend.gone.set()
    with pytest.raises(SandboxError, match=r"The sandbox is gone\."), ended_by_a_stop(run, every_s=SOON_S):
        backend.work()
    assert backend.removed == []


def test_what_has_come_to_its_end_stands_where_the_process_must_end(run: Run) -> None:
    with ended_by_a_stop(run, every_s=SOON_S):
        run.runtime.stopping.set()


def test_work_that_nobody_stops_goes_on(run: Run, backend: OneSandbox) -> None:
    with ended_by_a_stop(run, every_s=SOON_S):
        threading.Event().wait(0.1)
    assert backend.removed == []
