"""Work that nobody holds comes back, and what its lost worker left open is closed."""

from datetime import timedelta

import pytest
from sqlalchemy import event
from sqlmodel import select

from store.database import Database
from store.states import AttemptState, DeliveryState, LedgerKind, TaskKind, TaskState
from store.tables import Attempt, Delivery, Heartbeat, History, Ledger, Task
from store.types import utc_now
from tests.support.forge import MemoryForge, NoSandboxes, make_runtime
from tests.support.rows import QueueOfNames, add_attempt, add_repository, add_task, settings
from workers import budgets, leases
from workers.control import request_stop
from workers.errors import LeaseLost
from workers.pipeline import MAX_TRIES
from workers.reconciler import reconcile
from workers.runtime import Runtime

PAST = utc_now() - timedelta(minutes=1)
FUTURE = utc_now() + timedelta(hours=1)


@pytest.fixture
def forge() -> MemoryForge:
    return MemoryForge()


@pytest.fixture
def runtime(database: Database, forge: MemoryForge) -> Runtime:
    return make_runtime(database, settings(), forge)


def woken(runtime: Runtime) -> QueueOfNames:
    assert isinstance(runtime.queue, QueueOfNames)
    return runtime.queue


def row(runtime: Runtime, task_id: int) -> Task:
    with runtime.database.session() as session:
        return session.get_one(Task, task_id)


def lose(runtime: Runtime, state: TaskState = TaskState.ATTEMPTING, **values: object) -> int:
    """A task whose worker died a minute ago, with an attempt and a reservation under way."""
    held = {"lease_owner": "dead", "lease_until": PAST, "tries": 1}
    task_id = add_task(runtime.database, state=state, **(held | values))
    attempt_id = add_attempt(runtime.database, task_id)
    budgets.reserve(runtime.database, runtime.settings, task_id=task_id, attempt_id=attempt_id, model="small", usd=0.25)
    return task_id


def left_open(runtime: Runtime, task_id: int) -> tuple[list[AttemptState], list[LedgerKind]]:
    with runtime.database.session() as session:
        attempts = session.exec(select(Attempt.state).where(Attempt.task_id == task_id)).all()
        ledger = session.exec(select(Ledger.kind).where(Ledger.task_id == task_id)).all()
    return [AttemptState(state) for state in attempts], sorted(LedgerKind(kind) for kind in ledger)


CLOSED = ([AttemptState.LOST], [LedgerKind.ASSUMED, LedgerKind.RESERVED])


@pytest.mark.parametrize("state", [state for state in TaskState if state.is_open])
def test_a_task_whose_lease_ran_out_is_woken(runtime: Runtime, state: TaskState) -> None:
    task_id = lose(runtime, state)
    reconcile(runtime)
    assert row(runtime, task_id).state is TaskState.QUEUED
    assert row(runtime, task_id).lease_owner == ""
    assert woken(runtime).tasks == [task_id]


def test_a_task_that_is_worked_on_is_left_alone(runtime: Runtime) -> None:
    task_id = lose(runtime, lease_until=FUTURE)
    reconcile(runtime)
    assert row(runtime, task_id).state is TaskState.ATTEMPTING
    assert woken(runtime).tasks == []
    assert isinstance(runtime.backend, NoSandboxes)
    assert runtime.backend.removed == [f"all but ['{task_id}']"]


def test_a_task_that_keeps_killing_its_worker_is_given_up_with_words(runtime: Runtime) -> None:
    task_id = lose(runtime, tries=MAX_TRIES)
    reconcile(runtime)
    task = row(runtime, task_id)
    assert task.state is TaskState.FAILED
    assert f"{MAX_TRIES} workers were lost" in task.reason
    assert left_open(runtime, task_id) == CLOSED


def test_one_that_kills_its_worker_before_the_first_step_is_given_up_too(runtime: Runtime) -> None:
    task_id = lose(runtime, TaskState.QUEUED, tries=MAX_TRIES)
    reconcile(runtime)
    assert row(runtime, task_id).state is TaskState.FAILED


def test_a_stop_that_the_lost_worker_did_not_see_is_kept(runtime: Runtime) -> None:
    task_id = lose(runtime, stop_requested_by="maintainer")
    reconcile(runtime)
    assert row(runtime, task_id).state is TaskState.STOPPED
    assert left_open(runtime, task_id) == CLOSED


def test_an_interrupted_command_line_is_not_taken_up_by_a_server(runtime: Runtime) -> None:
    task_id = lose(runtime, kind=TaskKind.LOCAL, repository_id=None, target_number=None)
    reconcile(runtime)
    assert row(runtime, task_id).state is TaskState.FAILED
    assert left_open(runtime, task_id) == CLOSED
    assert woken(runtime).tasks == []


def test_a_stop_of_a_revived_task_closes_what_its_worker_left_open(runtime: Runtime) -> None:
    task_id = lose(runtime)
    reconcile(runtime)
    stopped = request_stop(runtime.database, runtime.queue, 42, 1, "maintainer")
    assert stopped is not None
    assert stopped.state is TaskState.STOPPED
    assert left_open(runtime, task_id) == CLOSED


def test_a_worker_that_was_merely_slow_writes_nothing_after_another_of_its_process_took_over(runtime: Runtime) -> None:
    task_id = add_task(runtime.database)
    slow = leases.take(runtime.database, task_id, runtime.name, 60)
    assert slow is not None
    with runtime.database.session() as session:
        session.add(session.get_one(Task, task_id).sqlmodel_update({"lease_until": PAST}))
    reconcile(runtime)
    second = leases.take(runtime.database, task_id, runtime.name, 60)
    assert second is not None
    with pytest.raises(LeaseLost), slow.transaction():
        pass
    with second.transaction() as (_session, task):
        assert task.id == task_id


def test_what_must_wait_is_not_woken_before_its_time(runtime: Runtime) -> None:
    add_task(runtime.database, not_before=FUTURE)
    reconcile(runtime)
    assert woken(runtime).tasks == []


def test_a_forgotten_delivery_is_brought_back_and_a_fresh_one_is_left_to_its_worker(runtime: Runtime) -> None:
    add_repository(runtime.database)
    with runtime.database.session() as session:
        old = Delivery(guid="old", event="issues", payload=b"{}", received_at=PAST)
        session.add_all(
            [
                old,
                Delivery(guid="fresh", event="issues", payload=b"{}"),
                Delivery(guid="done", event="issues", payload=b"{}", received_at=PAST, state=DeliveryState.HANDLED),
            ]
        )
    reconcile(runtime)
    assert woken(runtime).deliveries == [old.id]


def test_deliveries_that_must_wait_keep_no_later_one_from_being_brought_back(runtime: Runtime) -> None:
    with runtime.database.session() as session:
        waiting = [
            Delivery(guid=f"waits-{number}", event="issues", payload=b"{}", received_at=PAST, not_before=FUTURE)
            for number in range(150)
        ]
        forgotten = Delivery(guid="forgotten", event="issues", payload=b"{}", received_at=PAST, not_before=PAST)
        session.add_all([*waiting, forgotten])
    reconcile(runtime)
    assert woken(runtime).deliveries == [forgotten.id]


def test_words_that_were_not_written_are_written(runtime: Runtime, forge: MemoryForge) -> None:
    add_task(runtime.database, state=TaskState.NO_FIX, reason="Nothing was found.", updated_at=PAST)
    reconcile(runtime)
    assert "Nothing was found." in forge.comments[1][0]
    assert forge.labels == {1: "failed"}


def test_the_end_of_a_task_is_told_though_its_worker_was_lost_before_it_let_go(
    runtime: Runtime, forge: MemoryForge
) -> None:
    task_id = lose(runtime, TaskState.NO_FIX, reason="Nothing was found.", updated_at=PAST)
    reconcile(runtime)
    assert "Nothing was found." in forge.comments[1][0]
    assert row(runtime, task_id).lease_owner == ""
    assert isinstance(runtime.backend, NoSandboxes)
    assert runtime.backend.removed == ["all but []"], "its sandboxes are nobody's"
    assert left_open(runtime, task_id) == CLOSED


def test_a_worker_that_has_just_ended_its_task_tells_it_itself(runtime: Runtime, forge: MemoryForge) -> None:
    lose(runtime, TaskState.NO_FIX, lease_until=FUTURE, updated_at=PAST)
    reconcile(runtime)
    assert forge.comments == {}


def test_one_task_whose_words_cannot_be_written_keeps_no_other_from_its_own(
    runtime: Runtime, forge: MemoryForge
) -> None:
    for number in (1, 2):
        add_task(
            runtime.database,
            target_number=number,
            target=f"42/issues/{number}",
            state=TaskState.NO_FIX,
            updated_at=PAST,
        )
    crashes = iter([True])

    def crash_once(_method: str) -> None:
        if next(crashes, False):
            raise KeyError("a bug of our own")

    forge.before = crash_once
    reconcile(runtime)
    assert list(forge.comments) == [2]
    reconcile(runtime)
    assert list(forge.comments) == [2]  # the first has to wait a while


def test_a_round_leaves_a_sign_of_life(runtime: Runtime) -> None:
    reconcile(runtime)
    reconcile(runtime)
    with runtime.database.session() as session:
        assert [beat.name for beat in session.exec(select(Heartbeat))] == ["worker"]


def test_history_tells_of_the_loss(runtime: Runtime) -> None:
    task_id = lose(runtime)
    reconcile(runtime)
    with runtime.database.session() as session:
        words = session.exec(select(History.message).where(History.task_id == task_id)).all()
    assert words[-1] == "The worker was lost; the task waits for the next one."


def test_a_round_does_not_go_through_all_the_tasks_that_ever_were(sqlite_database: Database) -> None:
    runtime, asked = make_runtime(sqlite_database, settings(), MemoryForge()), list[tuple[str, object]]()
    event.listen(
        sqlite_database.engine,
        "before_cursor_execute",
        lambda _c, _cursor, text, values, *_: asked.append((text, values)),
    )
    reconcile(runtime)
    with sqlite_database.reading() as session:
        plans = [
            line.detail
            for text, values in list(asked)
            if "FROM task" in text
            for line in session.connection().exec_driver_sql(f"EXPLAIN QUERY PLAN {text}", values)  # type: ignore[arg-type]
        ]
    searches = [plan for plan in plans if " task" in plan]
    assert len(searches) >= 4
    assert not [plan for plan in searches if "SCAN" in plan or "(lease_until=?)" in plan], "most have no lease"
