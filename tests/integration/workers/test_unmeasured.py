"""What could not be measured teaches nothing before its outcome, which then counts as any other."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast

import pytest
from sqlmodel import select

from routing.contexts import traits
from sandbox.types import Backend
from store.database import Database
from store.states import AttemptState, OutcomeKind, TaskState
from store.tables import Attempt, MemoryEntry, Task
from store.types import utc_now
from tests.support.forge import make_runtime
from tests.support.local_backend import LocalBackend
from tests.support.rows import add_attempt, settings
from tests.support.small_tree import BUGGY, SmallTree
from workers.outcomes import record_outcome
from workers.pipeline import work_on
from workers.reencoding import Reencoding
from workers.runtime import Runtime

AT = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.fixture
def runtime(sqlite_database: Database, tmp_path: Path) -> Runtime:
    made = make_runtime(sqlite_database, settings(data_dir=tmp_path / "data", max_attempts=1))
    return replace(made, backend=cast("Backend", LocalBackend(tmp_path / "sandboxes")))


def published(runtime: Runtime, tree: SmallTree) -> int:
    """A task whose one attempt is handed in."""
    task_id = tree.add_task(runtime.database, title="It breaks", text="Please mend notes.txt.")
    add_attempt(
        runtime.database,
        task_id,
        state=AttemptState.FINISHED,
        steps=1,
        cost_usd=0.25,
        patch=tree.fix,
        finished_at=utc_now(),
    )
    work_on(runtime, task_id)
    with runtime.database.session() as session:
        task = session.get_one(Task, task_id)
        assert task.state is TaskState.PUBLISHED, task.reason
    return task_id


def entries(runtime: Runtime) -> list[MemoryEntry]:
    with runtime.database.session() as session:
        return list(session.exec(select(MemoryEntry)).all())


def tell(runtime: Runtime, task_id: int, kind: OutcomeKind, hours: int = 0) -> None:
    assert record_outcome(
        runtime.database, task_id, kind, ref=f"{kind}", at=AT + timedelta(hours=hours), data={"pr": 5}
    )


def test_without_tests_an_attempt_is_known_by_its_outcome_alone(runtime: Runtime, tmp_path: Path) -> None:
    task_id = published(runtime, SmallTree(tmp_path / "project", tests=""))
    assert entries(runtime) == []
    tell(runtime, task_id, OutcomeKind.CI_PASSED)
    assert entries(runtime) == [], "CI alone is not final"

    tell(runtime, task_id, OutcomeKind.MERGED, hours=1)
    [entry] = entries(runtime)
    assert (entry.model, entry.score, entry.final, entry.verifier_score) == ("small", 1.0, True, None)
    assert (entry.task_key, entry.title, entry.cost_usd) == (f"task:{task_id}", "It breaks", 0.25)
    with runtime.database.session() as session:
        attempt = session.exec(select(Attempt)).one()
    assert (entry.created_at, entry.updated_at) == (attempt.finished_at, AT + timedelta(hours=1))
    assert entry.text == "It breaks\n\nPlease mend notes.txt."
    assert entry.encoder == "", "nobody waits for an embedding"
    assert tuple(entry.traits) == traits(entry.text)
    reencoding = Reencoding(runtime.database, runtime.brain.router.encoder)
    reencoding()
    reencoding()
    [entry] = entries(runtime)
    assert entry.encoder == runtime.brain.router.encoder.name
    again = runtime.brain.choose(runtime.brain.router.task("later", entry.text, title="It breaks"))
    assert [(near.key, near.score) for near in again.neighbours] == [(entry.key, 1.0)]

    tell(runtime, task_id, OutcomeKind.REVERTED, hours=2)
    [entry] = entries(runtime)
    assert entry.score == 0.0


def test_what_was_measured_is_learnt_at_once(runtime: Runtime, tmp_path: Path) -> None:
    task_id = published(runtime, SmallTree(tmp_path / "project", BUGGY))
    [entry] = entries(runtime)
    assert (entry.final, entry.verifier_score) == (False, entry.score)
    tell(runtime, task_id, OutcomeKind.CLOSED)
    [entry] = entries(runtime)
    assert (entry.final, entry.score) == (True, 0.0)
    assert entry.verifier_score is not None
