"""The tests' state before a patch is measured once for a commit, whoever asks, and again when anything has changed."""

import os
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from sqlmodel import select

from sandbox.results import TestCommand, TestReport
from sandbox.types import Backend, Limits, SandboxSpec
from store.database import Database
from store.repo_config import RepositoryConfig
from store.states import AttemptState, TaskKind
from store.tables import Task, Verification
from tests.support.forge import NoSandboxes, make_runtime
from tests.support.local_backend import LocalBackend
from tests.support.rows import add_attempt, add_task, settings
from workers.baselines import Baselines, key_of
from workers.pipeline import work_on

REPORT = TestReport("make test", {"a": "passed", "b": "failed"}, 1, False, 2.0, "1 failed", rewritten=("x.py",))


def test_a_second_task_on_a_commit_does_not_run_its_baseline_again(sqlite_database: Database, tmp_path: Path) -> None:
    project, log = tmp_path / "project", tmp_path / "log"
    project.mkdir()
    (project / "notes.txt").write_text("bug\n")
    (project / "Makefile").write_text(f"test:\n\t@cat notes.txt >> {log}; grep -q fixed notes.txt\n")
    for line in ("init -q -b main .", "add .", "-c user.name=a -c user.email=a@b.invalid commit -q -m base"):
        subprocess.run(["git", *line.split()], cwd=project, check=True)
    (project / "notes.txt").write_text("fixed\n")
    patch = subprocess.run(
        ["git", "diff", "--full-index"], cwd=project, check=True, capture_output=True, text=True
    ).stdout
    subprocess.run(["git", "checkout", "-q", "."], cwd=project, check=True)

    def runs_of_a_task(worker: str) -> list[str]:
        """Have a new task's attempt verified by a worker of its own; return on what the tests ran."""
        runtime = replace(
            make_runtime(sqlite_database, settings(data_dir=tmp_path / "data"), name=worker),
            backend=cast("Backend", LocalBackend(tmp_path / worker)),
        )
        task_id = add_task(
            sqlite_database,
            kind=TaskKind.LOCAL,
            repository_id=None,
            target_number=None,
            target=worker,
            base_ref=str(project),
        )
        attempt = add_attempt(sqlite_database, task_id, state=AttemptState.FINISHED, steps=1, patch=patch)
        log.write_text("")
        work_on(runtime, task_id)
        with sqlite_database.session() as session:
            reason = session.get_one(Task, task_id).reason
            found = session.exec(select(Verification).where(Verification.attempt_id == attempt)).one()
            assert found.verdict == "verified", reason
        return log.read_text().split()

    # What the patch fixed is looked at once more, without it and with it: that is never taken from a cache.
    assert sorted(runs_of_a_task("first")) == ["bug", "bug", "fixed", "fixed"]
    assert sorted(runs_of_a_task("second")) == ["bug", "fixed", "fixed"]


def work(**changes: Any) -> Any:
    values: dict[str, Any] = {
        "source": SimpleNamespace(repository="o/r", base_sha="a" * 40, config=RepositoryConfig()),
        "sandbox": SandboxSpec("image", {"task": "1"}),
        "test_command": TestCommand("make test", "exit_code", "Makefile"),
    }
    return SimpleNamespace(**(values | changes))


class RebuiltBackend(NoSandboxes):
    def identify(self, image: str) -> str:
        return "another image of that name"


def test_whatever_a_baseline_depends_on_is_in_its_key() -> None:
    backend = cast("Backend", NoSandboxes())
    known = key_of(work(), backend, 600)
    assert key_of(work(sandbox=SandboxSpec("image", {"task": "2"})), backend, 600) == known
    config = RepositoryConfig.model_validate({"setup": ["make"]})
    others = [
        key_of(work(), backend, 60),
        key_of(work(), cast("Backend", RebuiltBackend()), 600),
        key_of(work(sandbox=SandboxSpec("image-2", {})), backend, 600),
        key_of(work(sandbox=SandboxSpec("image", {}, Limits(cpus=2))), backend, 600),
        key_of(work(test_command=TestCommand("make check", "exit_code", "Makefile")), backend, 600),
        key_of(work(test_command=None), backend, 600),
        *(
            key_of(work(source=SimpleNamespace(repository=name, base_sha=sha, config=rules)), backend, 600)
            for name, sha, rules in (
                ("o/s", "a" * 40, RepositoryConfig()),
                ("o/r", "b" * 40, RepositoryConfig()),
                ("o/r", "a" * 40, config),
            )
        ),
    ]
    assert len({known, *others}) == 1 + len(others)


def test_a_report_comes_back_as_it_was(tmp_path: Path) -> None:
    kept = Baselines(tmp_path / "baselines")
    assert kept.get("key") is None
    kept.keep("key", REPORT)
    assert kept.get("key") == REPORT
    assert [path.name for path in kept.folder.iterdir()] == ["key.json"]


@pytest.mark.parametrize(
    "report",
    [
        replace(REPORT, note="The exit code and the results do not agree."),
        replace(REPORT, files=frozenset({"a.py"})),
        TestReport("pytest", {}, 5, False, 0.1, "no tests ran"),
    ],
)
def test_what_is_not_believed_or_not_whole_is_not_kept(tmp_path: Path, report: TestReport) -> None:
    kept = Baselines(tmp_path)
    kept.keep("key", report)
    assert kept.get("key") is None


@pytest.mark.parametrize(("days", "timed_out", "there"), [(6, False, True), (8, False, False), (2, True, False)])
def test_baselines_grow_old(tmp_path: Path, days: int, timed_out: bool, there: bool) -> None:
    kept = Baselines(tmp_path)
    kept.keep("key", replace(REPORT, timed_out=timed_out, note="The tests ran out of time." if timed_out else ""))
    then = time.time() - days * 86_400
    os.utime(tmp_path / "key.json", (then, then))
    assert (kept.get("key") is not None) is there


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"results": 3}', b"\xff"])
def test_a_torn_file_is_no_baseline(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "key.json").write_bytes(content)
    assert Baselines(tmp_path).get("key") is None


def test_a_folder_that_cannot_be_written_costs_nothing_but_time(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    Baselines(tmp_path / "file").keep("key", REPORT)


def test_the_oldest_make_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workers.baselines._MOST", 2)
    kept = Baselines(tmp_path)
    for age, key in enumerate(("oldest", "middle", "newest")):
        kept.keep(key, REPORT)
        os.utime(tmp_path / f"{key}.json", (1e9 + age, 1e9 + age))
    assert {path.stem for path in tmp_path.iterdir()} == {"middle", "newest"}
