"""A model that judges: a real request for real money of the task, and a signal beside those of the tests."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from sqlmodel import col, select

from routing.pool import ModelPool
from sandbox.types import Backend
from store.database import Database
from store.states import AttemptState, LedgerKind, TaskState
from store.tables import Attempt, Ledger, MemoryEntry, ModelEndpoint, Task, Verification
from store.types import utc_now
from tests.support.forge import make_runtime
from tests.support.local_backend import LocalBackend
from tests.support.model_server import Fail, ModelServer, Reply, Say, model_server
from tests.support.rows import add_attempt, settings
from tests.support.small_tree import SOUND, SmallTree
from workers.breakers import FAILURES
from workers.pipeline import work_on
from workers.runtime import Runtime

JUDGE = "large"
ANSWER = Say(text=json.dumps({"reason": "It mends the cause.", "probability": 0.4}), usage=(1000, 100))
COST_USD = (1000 * 5.0 + 100 * 25.0) / 1e6


@pytest.fixture
def endpoint() -> Iterator[ModelServer]:
    with model_server([ANSWER]) as server:
        yield server


@pytest.fixture
def runtime(sqlite_database: Database, tmp_path: Path, endpoint: ModelServer) -> Runtime:
    made = make_runtime(sqlite_database, settings(data_dir=tmp_path / "data", judge_model=JUDGE, max_attempts=1))
    models = [
        spec.model_copy(update={"litellm_id": f"openai/{spec.name}", "api_base": endpoint.url})
        for spec in made.pool.models
    ]
    backend = cast("Backend", LocalBackend(tmp_path / "sandboxes"))
    return replace(made, pool=ModelPool(tuple(models)), backend=backend)


@pytest.fixture
def tree(tmp_path: Path) -> SmallTree:
    return SmallTree(tmp_path / "project")


def judged(runtime: Runtime, tree: SmallTree, **values: Any) -> tuple[Task, Attempt, Verification]:
    """Have the attempt of a model that fixed the tree verified, and return all that came of it."""
    task_id = tree.add_task(runtime.database, **values)
    attempt_id = add_attempt(
        runtime.database, task_id, state=AttemptState.FINISHED, steps=1, cost_usd=0.01, patch=tree.fix
    )
    work_on(runtime, task_id)
    with runtime.database.session() as session:
        return (
            session.get_one(Task, task_id),
            session.get_one(Attempt, attempt_id),
            session.exec(select(Verification).where(Verification.attempt_id == attempt_id)).one(),
        )


def signal(verification: Verification) -> dict[str, Any]:
    return next(one for one in verification.signals if one["name"] == "judge")


def ledger(runtime: Runtime) -> list[tuple[str, LedgerKind]]:
    with runtime.database.session() as session:
        return [(row.model, row.kind) for row in session.exec(select(Ledger).order_by(col(Ledger.id))).all()]


def test_the_opinion_is_a_signal_and_its_price_is_the_tasks(
    runtime: Runtime, tree: SmallTree, endpoint: ModelServer
) -> None:
    task, attempt, verification = judged(runtime, tree, title="It breaks", text="Please mend notes.txt.")
    assert task.state is TaskState.PUBLISHED, task.reason
    assert verification.verdict == "verified"
    assert (signal(verification)["value"], signal(verification)["evidence"]) == (
        0.4,
        f"{JUDGE} (${COST_USD:.4f}): It mends the cause.",
    )
    # The facts' score is 1, the judge is less sure: a twentieth of the way to its place between 0.7 and 1.
    assert verification.score == pytest.approx(1.0 - 0.05 / 1.09 * (1 - 0.82), abs=2e-3)
    [request] = endpoint.requests
    assert "Please mend notes.txt." in request["messages"][1]["content"]
    assert "+fixed" in request["messages"][1]["content"]

    assert ledger(runtime) == [(JUDGE, LedgerKind.RESERVED), (JUDGE, LedgerKind.SETTLED)]
    with runtime.database.session() as session:
        settled = session.exec(select(Ledger).where(col(Ledger.closing))).one()
        assert (settled.usd_micros, settled.task_id) == (round(COST_USD * 1e6), task.id)
        # What is learnt of the model that worked is its own price.
        assert session.exec(select(MemoryEntry.cost_usd)).one() == attempt.cost_usd == 0.01


def test_nobody_judges_a_patch_of_his_own(runtime: Runtime, tree: SmallTree, endpoint: ModelServer) -> None:
    with_itself = replace(runtime, settings=settings(data_dir=runtime.settings.data_dir, judge_model="small"))
    _, _, verification = judged(with_itself, tree)
    assert signal(verification)["value"] is None
    assert (endpoint.requests, ledger(runtime)) == ([], [])


@pytest.mark.parametrize("reply", [Fail(500), Fail(401), Say(text="I do not know.")])
def test_a_judge_that_fails_changes_nothing_else(
    runtime: Runtime, tree: SmallTree, endpoint: ModelServer, reply: Reply
) -> None:
    endpoint.script[:] = [reply]
    task, _, verification = judged(runtime, tree)
    assert task.state is TaskState.PUBLISHED, task.reason
    assert signal(verification)["value"] is None
    assert f"{JUDGE} gives no opinion" in signal(verification)["evidence"]
    assert verification.score == 1.0
    assert [kind for _, kind in ledger(runtime)] == [LedgerKind.RESERVED, LedgerKind.SETTLED]


def test_a_judge_that_fails_time_and_again_is_passed_over_until_it_answers(
    runtime: Runtime, tree: SmallTree, endpoint: ModelServer
) -> None:
    endpoint.script[:] = [Fail(401)]
    for number in range(FAILURES + 1):
        judged(runtime, tree, target=f"42/issues/{number}")
    assert len(endpoint.requests) == FAILURES, "then it is not asked"
    with runtime.database.session() as session:
        row = session.get_one(ModelEndpoint, JUDGE)
        assert "401" in row.error
        row.retry_at = utc_now()  # its pause is over
        session.add(row)
    endpoint.script[:] = [ANSWER]
    judged(runtime, tree, target="42/issues/9")
    with runtime.database.session() as session:
        assert session.get(ModelEndpoint, JUDGE) is None


def test_a_judge_is_not_paid_beyond_the_tasks_budget(runtime: Runtime, tree: SmallTree, endpoint: ModelServer) -> None:
    task, _, verification = judged(runtime, tree, budget_usd=0.000001)
    assert task.state is TaskState.PUBLISHED, task.reason
    assert "budget" in signal(verification)["evidence"]
    assert (endpoint.requests, ledger(runtime)) == ([], [])


def test_a_patch_that_breaks_something_is_judged_by_the_tests_alone(
    runtime: Runtime, tmp_path: Path, endpoint: ModelServer
) -> None:
    tree = SmallTree(tmp_path / "sound", SOUND)
    task_id = tree.add_task(runtime.database)
    add_attempt(runtime.database, task_id, state=AttemptState.FINISHED, steps=1, patch=tree.damage)
    work_on(runtime, task_id)
    with runtime.database.session() as session:
        assert session.exec(select(Verification.verdict)).one() == "breaking"
    assert endpoint.requests == []
