"""The Docker daemon is away, while it is upgraded say: tasks wait for it as for anything else that does not answer."""

from collections.abc import Callable
from pathlib import Path
from typing import NoReturn, cast

import pytest
from sqlmodel import select

from sandbox.agent_types import AgentRun
from sandbox.docker_backend import DockerBackend
from sandbox.errors import SandboxUnavailable
from sandbox.types import Backend, Limits, Sandbox, SandboxSpec
from store.database import Database
from store.states import AttemptState, TaskState
from store.tables import Attempt, History, Task
from store.types import utc_now
from tests.support.forge import NoSandboxes, make_runtime
from tests.support.rows import add_task, settings
from tests.support.small_tree import SmallTree
from workers.pipeline import work_on
from workers.runtime import Runtime


class AwayBeforeTheAttempt(NoSandboxes):
    """It answers until a model is to work."""

    def open(self, spec: SandboxSpec) -> Sandbox:
        raise SandboxUnavailable(f"Cannot use {spec.image}: the Docker daemon does not answer.")


class AwayUnderTheAgent(NoSandboxes):
    """It ends while a model works, with all its sandboxes."""

    def identify(self, image: str) -> str:
        raise SandboxUnavailable(f"Cannot use {image}: the Docker daemon does not answer.")


def loses_its_sandbox(*_: object) -> AgentRun:
    return AgentRun("SandboxError", 3, 10, 10, 0.1, "", {}, "the sandbox has ended")


@pytest.fixture
def daemon_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DockerBackend:
    """A backend whose daemon answered once, and whose socket is gone."""
    backend = DockerBackend("acrouter/base:1", Limits())
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/docker.sock")
    return backend


def row(runtime: Runtime, task_id: int) -> Task:
    with runtime.database.session() as session:
        return session.get_one(Task, task_id)


def test_a_task_waits_for_the_daemon_and_no_try_counts(
    sqlite_database: Database, tmp_path: Path, daemon_away: DockerBackend
) -> None:
    runtime = make_runtime(sqlite_database, settings(data_dir=tmp_path), backend=daemon_away)
    task_id = add_task(runtime.database)
    for _ in range(5):
        work_on(runtime, task_id)
        task = row(runtime, task_id)
        assert (task.state, task.tries, task.lease_owner) == (TaskState.QUEUED, 0, ""), task.reason
        assert "The Docker daemon does not answer" in task.reason
        assert task.not_before is not None
        assert task.not_before > utc_now()
        assert task.waiting_since is not None
        with runtime.database.session() as session:
            session.get_one(Task, task_id).not_before = None


@pytest.mark.parametrize("kind", [AwayBeforeTheAttempt, AwayUnderTheAgent])
def test_an_attempt_that_has_no_sandbox_is_lost_and_uses_no_chance_up(
    sqlite_database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type[NoSandboxes]
) -> None:
    runtime = make_runtime(sqlite_database, settings(data_dir=tmp_path), backend=cast("Backend", kind()))
    monkeypatch.setattr("workers.attempts.endpoint", lambda _run, _model: None)
    if kind is AwayUnderTheAgent:
        monkeypatch.setattr("workers.attempts._work", loses_its_sandbox)
    task_id = SmallTree(tmp_path / "project").add_task(runtime.database)
    work_on(runtime, task_id)
    task = row(runtime, task_id)
    assert task.state is TaskState.FAILED, "a person waits at the command line"
    assert task.reason == "Cannot use base: the Docker daemon does not answer."
    with runtime.database.session() as session:
        [attempt] = session.exec(select(Attempt)).all()
        assert attempt.state is AttemptState.LOST
        assert any("was interrupted" in entry.message for entry in session.exec(select(History)).all())


def listed(backend: DockerBackend) -> None:
    backend.remove_leftovers(frozenset)


def looked_at(backend: DockerBackend) -> None:
    backend.identify("acrouter/base:1")


def started(backend: DockerBackend) -> NoReturn:
    backend.open(SandboxSpec("acrouter/base:1", {}))
    raise AssertionError


@pytest.mark.docker
@pytest.mark.parametrize("call", [listed, looked_at, started])
def test_a_daemon_that_goes_away_is_no_fault_of_what_was_asked(
    call: Callable[[DockerBackend], None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    backend = DockerBackend("acrouter/base:1", Limits())
    backend.ping()
    monkeypatch.setattr(backend._api, "base_url", "http+docker://localhost:1")
    for adapter in backend._api.adapters.values():
        monkeypatch.setattr(adapter, "socket_path", f"{tmp_path}/gone.sock", raising=False)
        adapter.close()
    with pytest.raises(SandboxUnavailable, match="the Docker daemon does not answer"):
        call(backend)
