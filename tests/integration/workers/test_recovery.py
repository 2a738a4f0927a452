"""A worker goes on from what a lost one left: nothing is done twice, and nothing that was paid for is forgotten."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import pytest
from sqlalchemy import text
from sqlmodel import select

from routing import RoutingDecision
from routing.types import RankedModel
from sandbox.agent_types import AgentRun
from store.database import Database
from store.states import AttemptState, LedgerKind, TaskKind, TaskState
from store.tables import Attempt, History, Ledger, MemoryEntry, ModelEndpoint, Task, Verification
from store.types import utc_now
from tests.support.forge import NoSandboxes, make_runtime
from tests.support.rows import add_attempt, add_task, settings
from workers import attempts, budgets, leases, recovery
from workers.context import Work
from workers.pipeline import MAX_REFUSED_TRIES, work_on
from workers.run import Run
from workers.runtime import Runtime


@pytest.fixture
def runtime(database: Database, tmp_path: Path) -> Runtime:
    return make_runtime(database, settings(data_dir=tmp_path / "data"))


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "notes.txt").write_text("one\n")
    for line in ("init -q -b main .", "add .", "-c user.name=a -c user.email=a@b.invalid commit -q -m base"):
        subprocess.run(["git", *line.split()], cwd=folder, check=True)
    return folder


def verdict(runtime: Runtime, attempt_id: int, score: float = 0.9) -> None:
    with runtime.database.session() as session:
        session.add(Verification(attempt_id=attempt_id, score=score, verdict="verified", summary="It passes."))


def row(runtime: Runtime, task_id: int) -> Task:
    with runtime.database.session() as session:
        return session.get_one(Task, task_id)


def local_task(runtime: Runtime, repository: Path, **values: object) -> int:
    return add_task(
        runtime.database,
        kind=TaskKind.LOCAL,
        repository_id=None,
        target_number=None,
        target="local",
        title="A title",
        text="A text",
        base_ref=str(repository),
        **values,
    )


def test_an_attempt_that_was_judged_before_its_worker_died_is_published_and_remembered(
    runtime: Runtime, repository: Path
) -> None:
    task_id = local_task(runtime, repository)
    attempt_id = add_attempt(runtime.database, task_id, state=AttemptState.VERIFIED, score=0.9, patch="a patch")
    verdict(runtime, attempt_id)
    work_on(runtime, task_id)
    task = row(runtime, task_id)
    assert (task.state, task.published_attempt_id) == (TaskState.PUBLISHED, attempt_id), task.reason
    with runtime.database.session() as session:
        [entry] = session.exec(select(MemoryEntry)).all()
        assert (entry.key, entry.model, entry.score) == (f"attempt:{attempt_id}", "small", 0.9)
        assert len(session.exec(select(Attempt)).all()) == 1


def test_the_attempt_whose_publishing_had_begun_stays_the_chosen_one(runtime: Runtime, repository: Path) -> None:
    task_id = local_task(runtime, repository)
    chosen = add_attempt(runtime.database, task_id, state=AttemptState.VERIFIED, score=0.6, patch="a patch")
    better = add_attempt(runtime.database, task_id, number=2, state=AttemptState.VERIFIED, score=0.9, patch="another")
    verdict(runtime, chosen, 0.6)
    verdict(runtime, better)
    with runtime.database.session() as session:
        session.get_one(Task, task_id).published_attempt_id = chosen
    work_on(runtime, task_id)
    assert row(runtime, task_id).state is TaskState.PUBLISHED
    assert row(runtime, task_id).published_attempt_id == chosen


def test_cleaning_up_closes_what_was_open_and_says_so_once(runtime: Runtime) -> None:
    task_id = add_task(runtime.database)
    attempt_id = add_attempt(runtime.database, task_id)
    budgets.reserve(runtime.database, runtime.settings, task_id=task_id, attempt_id=attempt_id, model="small", usd=0.25)
    lease = leases.take(runtime.database, task_id, "second", 60)
    assert lease is not None
    with lease:
        run = Run(runtime, lease)
        recovery.clean_up(run)
        recovery.clean_up(run)
    with runtime.database.session() as session:
        attempt = session.get_one(Attempt, attempt_id)
        assert (attempt.state, attempt.cost_usd) == (AttemptState.LOST, 0.25)
        assert attempt.finished_at is not None
        assert session.exec(select(Ledger.kind)).all() == [LedgerKind.RESERVED, LedgerKind.ASSUMED]
        assert session.exec(select(History.message)).all() == ["Attempt 1 was interrupted."]
    assert isinstance(runtime.backend, NoSandboxes)
    assert runtime.backend.removed == [str(task_id)] * 2


def test_an_attempt_that_was_lost_uses_no_chance_up(runtime: Runtime) -> None:
    task_id = add_task(runtime.database)
    add_attempt(runtime.database, task_id, state=AttemptState.LOST)
    judged = add_attempt(runtime.database, task_id, number=2, state=AttemptState.VERIFIED, score=0.9)
    verdict(runtime, judged)
    lease = leases.take(runtime.database, task_id, "second", 60)
    assert lease is not None
    with lease:
        made = recovery.attempts_so_far(Run(runtime, lease), cast("Work", None))
    assert [(one.attempt.id, one.verified) for one in made] == [(judged, True)]


def test_a_process_that_must_end_takes_up_nothing(runtime: Runtime) -> None:
    task_id = add_task(runtime.database)
    runtime.stopping.set()
    work_on(runtime, task_id)
    with runtime.database.session() as session:
        assert session.exec(select(History)).all() == []
    assert (row(runtime, task_id).state, row(runtime, task_id).tries) == (TaskState.QUEUED, 0)


@pytest.mark.parametrize(
    ("ending", "state"),
    [
        ("Submitted", AttemptState.FINISHED),
        ("LimitsExceeded", AttemptState.FINISHED),
        ("BudgetExceeded", AttemptState.FINISHED),
        ("ModelError", AttemptState.FAILED),
        ("Stopped", AttemptState.LOST),
    ],
)
def test_an_attempt_that_was_stopped_half_way_is_not_judged(runtime: Runtime, ending: str, state: AttemptState) -> None:
    task_id = add_task(runtime.database)
    lease = leases.take(runtime.database, task_id, "worker", 60)
    assert lease is not None
    decision = RoutingDecision((RankedModel("small", 1.0, 1.0, 0.5, 0.1),), (), (), ())
    with lease:
        run = Run(runtime, lease)
        attempt = attempts.begin(run, decision)
        attempts.finish(run, attempt, AgentRun(ending, 1, 10, 10, 0.01, "half a patch", {}))
    with runtime.database.session() as session:
        kept = session.get_one(Attempt, attempt.id)
        assert (kept.state, kept.patch) == (state, "half a patch")


def test_a_program_that_never_asked_its_model_says_nothing_about_it(runtime: Runtime) -> None:
    task_id = add_task(runtime.database)
    lease = leases.take(runtime.database, task_id, "worker", 60)
    assert lease is not None
    decision = RoutingDecision((RankedModel("small", 1.0, 1.0, 0.5, 0.1),), (), (), ())
    with runtime.database.session() as session:
        runtime.breakers.failed(session, "small", "HTTP 503", utc_now())
    with lease:
        run = Run(runtime, lease)
        attempt = attempts.begin(run, decision)
        attempts.finish(run, attempt, AgentRun("ProgramError", 0, 0, 0, 0.0, "its own patch", {}, "ended with 1"))
    with runtime.database.session() as session:
        assert session.get_one(Attempt, attempt.id).state is AttemptState.FAILED
        assert session.get_one(ModelEndpoint, "small").failures == 1, "neither a failure nor an answer"


def test_an_early_end_leaves_no_attempt_running(runtime: Runtime, repository: Path) -> None:
    task_id = local_task(runtime, repository)  # no sandbox can be started here
    work_on(runtime, task_id)
    task = row(runtime, task_id)
    assert task.state is TaskState.FAILED
    assert "No sandbox of base is started" in task.reason
    with runtime.database.session() as session:
        assert session.exec(select(Attempt.state)).all() == [AttemptState.FAILED]


class AsksADatabaseThatIsAway:
    """A target during whose look the database takes no connections."""

    def adopt(self, run: Run) -> bool:
        with taking_no_connections(run.runtime.database):
            return bool(run.task().head_sha)


@contextmanager
def taking_no_connections(database: Database) -> Iterator[None]:
    """As while Postgres starts again: who is connected is thrown out, and nobody is let in."""
    name, server = database.engine.url.database, Database(str(database.url).rpartition("/")[0] + "/postgres")
    with server.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:

        def let_in(whether: bool) -> None:
            connection.execute(text(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS {whether}'))

        let_in(False)
        connection.execute(
            text("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = :name"), {"name": name}
        )
        try:
            yield
        finally:
            let_in(True)
    server.dispose()


@pytest.mark.postgres
def test_a_database_that_is_away_for_a_moment_ends_no_task(
    postgres_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = make_runtime(postgres_database, settings())
    task_id = add_task(runtime.database)
    attempt_id = add_attempt(runtime.database, task_id, state=AttemptState.VERIFIED, score=0.9)
    monkeypatch.setattr("workers.pipeline.target_of", lambda _run: AsksADatabaseThatIsAway())
    for _ in range(MAX_REFUSED_TRIES - 1):
        work_on(runtime, task_id)
        task = row(runtime, task_id)
        assert (task.state, task.lease_owner) == (TaskState.QUEUED, ""), task.reason
        assert task.reason == "The database did not answer for a moment."
        assert task.not_before is not None
        with runtime.database.session() as session:
            session.get_one(Task, task_id).not_before = None
    work_on(runtime, task_id)
    assert row(runtime, task_id).state is TaskState.FAILED, "it will not do, and somebody has to look"
    with runtime.database.session() as session:
        assert session.get_one(Attempt, attempt_id).score == 0.9, "what was paid for is kept"
