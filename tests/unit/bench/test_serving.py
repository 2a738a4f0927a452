"""A server that a benchmark starts, and the task that it waits for."""

import os
import sys
from pathlib import Path

import httpx
import pytest

from bench.errors import BenchError
from bench.serving import serving
from bench.waiting import wait_for_task
from bot.demo.throwaway import free_port
from store.database import Database
from store.states import TaskState
from tests.support.rows import add_task


def test_a_server_is_up_as_long_as_it_is_measured(tmp_path: Path) -> None:
    port = free_port()
    command = [sys.executable, "-m", "http.server", "--bind", "127.0.0.1", str(port)]
    (tmp_path / "page").write_text("here", encoding="utf-8")
    with serving(command, port, os.environ, folder=tmp_path, log=tmp_path / "log") as process:
        assert httpx.get(f"http://127.0.0.1:{port}/page", trust_env=False).text == "here"
    assert process.returncode is not None
    assert "GET /page" in (tmp_path / "log").read_text(encoding="utf-8")


def test_one_that_ends_at_once_is_an_error_and_its_words_are_kept(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "raise SystemExit('no such database')"]
    with (
        pytest.raises(BenchError, match="did not come up: 1"),
        serving(command, free_port(), os.environ, log=tmp_path / "log"),
    ):
        pass
    assert (tmp_path / "log").read_text(encoding="utf-8") == "no such database\n"


def _wait(database: Database, state: TaskState) -> float:
    path = database.engine.url.database
    assert path is not None

    def look() -> None:
        raise BenchError("still waiting")

    return wait_for_task(Path(path), "octo/tools", 1, state, look=look)


def test_a_task_is_done_when_it_is_reported_and_let_go_of(sqlite_database: Database) -> None:
    add_task(sqlite_database, state=TaskState.PUBLISHED, report_due=False)
    assert _wait(sqlite_database, TaskState.PUBLISHED) > 0


@pytest.mark.parametrize(
    "changes",
    [
        {"state": TaskState.VERIFYING, "report_due": False},
        {"state": TaskState.PUBLISHED, "report_due": True},
        {"state": TaskState.PUBLISHED, "report_due": False, "lease_owner": "worker"},
    ],
)
def test_until_then_it_is_waited_for(sqlite_database: Database, changes: dict[str, object]) -> None:
    add_task(sqlite_database, **changes)
    with pytest.raises(BenchError, match="still waiting"):
        _wait(sqlite_database, TaskState.PUBLISHED)


def test_a_published_task_may_still_be_closed(sqlite_database: Database) -> None:
    add_task(sqlite_database, state=TaskState.PUBLISHED, report_due=False)
    with pytest.raises(BenchError, match="still waiting"):
        _wait(sqlite_database, TaskState.CLOSED)


def test_one_that_ends_without_a_pr_is_an_error_with_its_reason(sqlite_database: Database) -> None:
    add_task(sqlite_database, state=TaskState.NO_FIX, reason="No attempt passed.")
    words = r"issue 1 of octo/tools ended without a PR \(no_fix\): No attempt passed\."
    with pytest.raises(BenchError, match=words):
        _wait(sqlite_database, TaskState.PUBLISHED)
