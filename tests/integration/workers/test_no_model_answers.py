"""No model can be reached: that is acrouter's failure and no answer of the models, and another try may do better."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from sqlmodel import select

from bot.dashboard.health import retry_task
from bot.dashboard.roles import Role, Viewer
from routing.pool import ModelPool
from sandbox.types import Backend
from store.database import Database
from store.states import AttemptState, LedgerKind, TaskState
from store.tables import Attempt, Decision, History, Ledger, MemoryEntry, Task
from tests.support.forge import make_runtime
from tests.support.local_backend import LocalBackend
from tests.support.model_server import Fail, ModelServer, model_server
from tests.support.rows import add_attempt, settings
from tests.support.small_tree import SmallTree
from workers.budgets import spent_micros
from workers.pipeline import work_on
from workers.runtime import Runtime


@pytest.fixture
def endpoint() -> Iterator[ModelServer]:
    with model_server([Fail(401, "no such key")]) as server:
        yield server


@pytest.fixture
def runtime(sqlite_database: Database, tmp_path: Path, endpoint: ModelServer) -> Runtime:
    made = make_runtime(sqlite_database, settings(data_dir=tmp_path / "data", max_attempts=3))
    models = tuple(
        spec.model_copy(update={"litellm_id": f"openai/{spec.name}", "api_base": endpoint.url})
        for spec in made.pool.models
    )
    return replace(made, pool=ModelPool(models), backend=cast("Backend", LocalBackend(tmp_path / "sandboxes")))


@pytest.fixture
def tree(tmp_path: Path) -> SmallTree:
    return SmallTree(tmp_path / "project")


def worked_on(runtime: Runtime, tree: SmallTree, **values: Any) -> Task:
    task_id = tree.add_task(runtime.database, **values)
    work_on(runtime, task_id)
    with runtime.database.session() as session:
        return session.get_one(Task, task_id)


def attempts(runtime: Runtime) -> list[Attempt]:
    with runtime.database.session() as session:
        return list(session.exec(select(Attempt).order_by(Attempt.id)).all())  # type: ignore[arg-type]


def test_a_task_that_no_model_could_work_on_has_failed_and_says_why_once(runtime: Runtime, tree: SmallTree) -> None:
    task = worked_on(runtime, tree, pinned_model="small")
    assert task.state is TaskState.FAILED
    assert task.reason.startswith("No model could be reached. small could not be used: HTTP 401: AuthenticationError: ")
    assert task.reason.count("AuthenticationError") == 1, task.reason
    assert "cannot be used" not in task.reason
    with runtime.database.session() as session:
        told = [row.message for row in session.exec(select(History)).all() if "could not be used" in row.message]
        assert session.exec(select(MemoryEntry)).all() == []
        assert {row.kind for row in session.exec(select(Ledger)).all()} == {LedgerKind.RESERVED, LedgerKind.SETTLED}
        assert spent_micros(session, task_id=task.id) == 0, "nothing stays reserved"
    assert all(message.count("small") == 1 for message in told), told


def test_each_model_is_named_with_its_reason(runtime: Runtime, tree: SmallTree) -> None:
    task = worked_on(runtime, tree)
    assert task.state is TaskState.FAILED
    models = {attempt.model for attempt in attempts(runtime)}
    assert len(models) == 3
    for model in models:
        assert f"{model} could not be used: HTTP 401" in task.reason


def test_another_try_asks_the_models_anew(runtime: Runtime, tree: SmallTree, endpoint: ModelServer) -> None:
    task = worked_on(runtime, tree, pinned_model="small")
    assert task.id is not None
    asked = len(endpoint.requests)
    assert retry_task(runtime.database, task.id, Viewer("ada", Role.OPERATOR, None))
    work_on(runtime, task.id)
    assert len(endpoint.requests) > asked
    assert [attempt.state for attempt in attempts(runtime)] == [AttemptState.FAILED, AttemptState.FAILED]


def test_a_task_whose_money_went_while_no_model_answered_has_failed_too(runtime: Runtime, tree: SmallTree) -> None:
    task_id = tree.add_task(runtime.database, budget_usd=0.000001)
    add_attempt(
        runtime.database,
        task_id,
        state=AttemptState.FAILED,
        exit_status="ModelError",
        error="small cannot be used: no connection",
    )
    work_on(runtime, task_id)
    with runtime.database.session() as session:
        task = session.get_one(Task, task_id)
        assert session.exec(select(Decision)).all()
    assert task.state is TaskState.FAILED
    assert task.reason.startswith("No model could be reached. small could not be used: no connection ")


def test_a_model_that_had_its_chance_makes_it_no_failure_of_acrouter(runtime: Runtime, tree: SmallTree) -> None:
    task_id = tree.add_task(runtime.database)
    add_attempt(runtime.database, task_id, state=AttemptState.FINISHED, steps=1, patch=tree.damage)
    add_attempt(runtime.database, task_id, number=2, model="large", state=AttemptState.FAILED, exit_status="ModelError")
    work_on(runtime, task_id)
    with runtime.database.session() as session:
        assert session.get_one(Task, task_id).state is not TaskState.FAILED
