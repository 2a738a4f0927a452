"""One open task a target, one task a delivery, and a circuit breaker."""

from concurrent.futures import ThreadPoolExecutor, wait

import pytest
from sqlmodel import select

from bot.dashboard.health import retry_task
from bot.dashboard.roles import Role, Viewer
from sandbox.errors import BudgetExceeded
from store.database import Database
from store.states import TaskKind, TaskState
from store.tables import History, Task
from tests.support.rows import QueueOfNames, add_attempt, add_repository, add_task, new_task, settings
from workers import budgets
from workers.control import request_stop
from workers.intake import Joined, Refused, Started, start_task
from workers.locks import take_turn


@pytest.fixture
def queue(database: Database) -> QueueOfNames:
    add_repository(database)
    return QueueOfNames()


def end(database: Database, task_id: int) -> None:
    with database.session() as session:
        session.add(session.get_one(Task, task_id).sqlmodel_update({"state": TaskState.NO_FIX}))


def test_a_started_task_is_queued_told_and_woken(database: Database, queue: QueueOfNames) -> None:
    started = start_task(database, queue, new_task(), settings())
    assert isinstance(started, Started)
    assert queue.tasks == [started.task_id]
    with database.session() as session:
        assert session.get_one(Task, started.task_id).state is TaskState.QUEUED
        assert [row.message for row in session.exec(select(History))] == ["Asked for by maintainer with the label."]


def test_a_second_trigger_on_the_same_target_joins(database: Database, queue: QueueOfNames) -> None:
    first = start_task(database, queue, new_task(), settings())
    assert isinstance(first, Started)
    assert start_task(database, queue, new_task(), settings()) == Joined(first.task_id)
    assert isinstance(start_task(database, queue, new_task(2), settings()), Started)


def test_triggers_at_the_same_moment_start_one_task(database: Database, queue: QueueOfNames) -> None:
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _n: start_task(database, queue, new_task(), settings()), range(8)))
    assert sum(isinstance(answer, Started) for answer in answers) == 1
    assert sum(isinstance(answer, Joined) for answer in answers) == 7


def test_a_retry_on_the_dashboard_takes_turns_with_what_starts_there_meanwhile(
    database: Database, queue: QueueOfNames
) -> None:
    failed = add_task(database, state=TaskState.FAILED)
    with ThreadPoolExecutor(1) as pool:
        with database.session() as starting:  # `start_task`, before it commits
            take_turn(starting, "target:42/issues/1")
            starting.add(Task(**new_task().__dict__ | {"budget_usd": 2.0}))
            starting.flush()
            retried = pool.submit(retry_task, database, failed, Viewer("ada", Role.OPERATOR, None))
            wait([retried], timeout=0.5)
        assert not retried.result(timeout=20), "the target has an open task"


def test_the_same_delivery_starts_one_task_even_after_its_end(database: Database, queue: QueueOfNames) -> None:
    first = start_task(database, queue, new_task(delivery_guid="g"), settings())
    assert isinstance(first, Started)
    end(database, first.task_id)
    assert start_task(database, queue, new_task(delivery_guid="g"), settings()) == first


def test_the_circuit_breaker_opens_after_too_many_tasks_on_one_target(database: Database, queue: QueueOfNames) -> None:
    for _ in range(2):
        started = start_task(database, queue, new_task(), settings(max_tasks_per_target=2))
        assert isinstance(started, Started)
        end(database, started.task_id)
    refused = start_task(database, queue, new_task(), settings(max_tasks_per_target=2))
    assert isinstance(refused, Refused)
    assert "ACROUTER_MAX_TASKS_PER_TARGET" in refused.reason


def test_nothing_starts_when_the_days_budget_is_used_up(database: Database, queue: QueueOfNames) -> None:
    other = add_task(database, target="42/issues/9")
    caps = settings(day_budget_usd=0.5)
    budgets.reserve(database, caps, task_id=other, attempt_id=add_attempt(database, other), model="small", usd=0.5)
    refused = start_task(database, queue, new_task(), caps)
    assert isinstance(refused, Refused)
    assert "ACROUTER_DAY_BUDGET_USD" in refused.reason


def test_a_secret_that_somebody_pasted_is_not_kept(database: Database, queue: QueueOfNames) -> None:
    token = "ghp_" + "a" * 36
    started = start_task(database, queue, new_task(title=token, text=f"I use {token} here.", hint=token), settings())
    assert isinstance(started, Started)
    with database.session() as session:
        task = session.get_one(Task, started.task_id)
    removed = "[secret removed]"
    assert (task.title, task.text, task.hint) == (removed, f"I use {removed} here.", removed)


def test_a_local_task_counts_against_the_operators_caps(database: Database, queue: QueueOfNames) -> None:
    caps = settings(day_budget_usd=0.5)
    local = add_task(database, repository_id=None, kind=TaskKind.LOCAL, target="local/a", target_number=None)
    attempt = add_attempt(database, local)
    budgets.reserve(database, caps, task_id=local, attempt_id=attempt, model="small", usd=0.4)
    with pytest.raises(BudgetExceeded, match="ACROUTER_DAY_BUDGET_USD"):
        budgets.reserve(database, caps, task_id=local, attempt_id=attempt, model="small", usd=0.2)


@pytest.mark.parametrize(("asked", "given"), [(None, 1.0), (100.0, 1.0), (0.25, 0.25), (0.0, 0.0)])
def test_the_operators_task_budget_bounds_what_a_person_asks_for(
    database: Database, queue: QueueOfNames, asked: float | None, given: float
) -> None:
    started = start_task(database, queue, new_task(budget_usd=asked), settings(task_budget_usd=1.0))
    assert isinstance(started, Started)
    with database.session() as session:
        assert session.get_one(Task, started.task_id).budget_usd == given


def test_a_person_is_told_that_the_task_gets_less_than_was_asked_for(database: Database, queue: QueueOfNames) -> None:
    within = start_task(database, queue, new_task(target="42/issues/1", budget_usd=1.0), settings(task_budget_usd=1.0))
    above = start_task(database, queue, new_task(target="42/issues/2", budget_usd=9.5), settings(task_budget_usd=1.0))
    assert isinstance(within, Started)
    assert isinstance(above, Started)
    with database.session() as session:
        reasons = [session.get_one(Task, started.task_id).reason for started in (within, above)]
    assert "budget" not in reasons[0]
    assert reasons[1].endswith(
        " Its budget is $1.00 in place of $9.50: an operator can raise ACROUTER_TASK_BUDGET_USD."
    )


def test_a_waiting_task_stops_at_once(database: Database, queue: QueueOfNames) -> None:
    started = start_task(database, queue, new_task(), settings())
    assert isinstance(started, Started)
    stopped = request_stop(database, queue, 42, 1, "maintainer")
    assert stopped is not None
    assert stopped.state is TaskState.STOPPED
    assert request_stop(database, queue, 42, 1, "maintainer") is None
