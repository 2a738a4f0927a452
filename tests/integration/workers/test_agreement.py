"""Two models that come to the same change by themselves believe in it, and so does the verifier, a little."""

from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
from sqlmodel import col, select

from sandbox.types import Backend
from store.database import Database
from store.states import AttemptState, TaskState
from store.tables import Attempt, Task, Verification
from tests.support.forge import make_runtime
from tests.support.local_backend import LocalBackend
from tests.support.rows import add_attempt, settings
from tests.support.small_tree import SOUND, SmallTree
from workers.pipeline import work_on
from workers.runtime import Runtime


@pytest.fixture
def tree(tmp_path: Path) -> SmallTree:
    return SmallTree(tmp_path / "project")


@pytest.fixture
def runtime(sqlite_database: Database, tmp_path: Path) -> Runtime:
    made = make_runtime(sqlite_database, settings(data_dir=tmp_path / "data", max_attempts=3))
    return replace(made, backend=cast("Backend", LocalBackend(tmp_path / "sandboxes")))


def judged(runtime: Runtime, tree: SmallTree, *attempts: tuple[str, str]) -> tuple[Task, list[float | None]]:
    """Have attempts (model, patch) of one task verified; return the task and each one's agreement."""
    task_id = tree.add_task(runtime.database)
    for number, (model, patch) in enumerate(attempts, 1):
        add_attempt(
            runtime.database,
            task_id,
            state=AttemptState.FINISHED,
            number=number,
            model=model,
            steps=1,
            cost_usd=0.01 * number,
            patch=patch,
        )
    work_on(runtime, task_id)
    with runtime.database.session() as session:
        rows = session.exec(select(Verification).order_by(col(Verification.attempt_id))).all()
        values = [next(s["value"] for s in row.signals if s["name"] == "agreement") for row in rows]
        return session.get_one(Task, task_id), values


def test_what_two_of_three_models_do_is_handed_in(runtime: Runtime, tree: SmallTree) -> None:
    one, other = tree.edit("notes.txt", "bug\none\n"), tree.edit("notes.txt", "bug\nother\n")
    task, agreement = judged(runtime, tree, ("small", one), ("medium", other), ("large", other))
    assert agreement == [None, 0.0, 1.0]
    assert task.state is TaskState.PUBLISHED, task.reason
    with runtime.database.session() as session:
        published = session.get_one(Attempt, task.published_attempt_id)
        scores = session.exec(select(Attempt.score).order_by(col(Attempt.number))).all()
    assert published.model == "large"
    first, second, third = (score or 0.0 for score in scores)
    assert first == second < third < 0.65


def test_a_model_that_agrees_with_itself_says_nothing(runtime: Runtime, tree: SmallTree) -> None:
    patch = tree.edit("notes.txt", "bug\none\n")
    _, agreement = judged(runtime, tree, ("small", patch), ("small", patch), ("small", patch))
    assert agreement == [None, None, None]


def test_models_that_break_the_same_tests_agree_in_vain(runtime: Runtime, tmp_path: Path) -> None:
    tree = SmallTree(tmp_path / "sound", SOUND)
    task, agreement = judged(runtime, tree, ("small", tree.damage), ("medium", tree.damage), ("large", tree.damage))
    assert agreement == [None, None, None]
    assert task.state is TaskState.NO_FIX
