"""What linters say of a patch, and how little it counts."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from sandbox.errors import SandboxError
from sandbox.lint import WEIGHT, Finding, Fresh, lint, with_findings
from sandbox.results import Signal, Verdict, VerificationResult
from sandbox.types import CommandResult, Sandbox

TODO = 'if grep -n TODO code.txt; then echo "$(grep -c TODO code.txt) found"; exit 1; fi'


class Shell:
    """Runs commands in a folder; the rest of a sandbox is not needed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def execute(self, command: str, *, timeout_s: float) -> CommandResult:
        if command == "crash":
            raise SandboxError("the sandbox has ended")
        try:
            done = subprocess.run(
                ["bash", "-c", command], cwd=self.folder, capture_output=True, text=True, timeout=timeout_s, check=False
            )
        except subprocess.TimeoutExpired:
            return CommandResult("", 124, True, timeout_s)
        return CommandResult(done.stdout + done.stderr, done.returncode, False, 0.0)


def tree(folder: Path, text: str) -> Fresh:
    folder.mkdir(parents=True)
    (folder / "code.txt").write_text(text)

    @contextmanager
    def fresh() -> Iterator[Sandbox]:
        yield cast("Any", Shell(folder))

    return fresh


def found(tmp_path: Path, before: str, after: str, command: str = TODO) -> Finding:
    trees = (tree(tmp_path / name, text) for name, text in (("before", before), ("after", after)))
    (finding,) = lint([command], *trees, timeout_s=1)
    return finding


def test_a_new_finding_is_told_by_its_line(tmp_path: Path) -> None:
    assert found(tmp_path, "a\n", "a\nTODO b\n").new == ("2:TODO b", "1 found")


def test_what_was_found_before_is_not_the_patchs_though_it_moved(tmp_path: Path) -> None:
    assert found(tmp_path, "TODO b\n", "a\nTODO b\n") == Finding(TODO)
    assert found(tmp_path / "more", "TODO b\n", "TODO b\nTODO b\n").new == ("2:TODO b",)


def test_colours_are_no_difference(tmp_path: Path) -> None:
    command = "test -s code.txt && printf '\\e[31mbad\\e[0m\\n' || echo bad; exit 1"
    assert found(tmp_path, "", "text", command) == Finding(command)


def test_a_silent_linter_that_fails_now_has_found_something(tmp_path: Path) -> None:
    command = "! grep -q TODO code.txt"
    assert found(tmp_path, "a\n", "TODO\n", command).new == ("it ends with 1",)


@pytest.mark.parametrize(
    ("command", "why"), [("no-such-linter .", "not found"), ("sleep 5", "did not end in time"), ("crash", "has ended")]
)
def test_a_linter_that_cannot_be_run_finds_nothing(tmp_path: Path, command: str, why: str) -> None:
    assert why in found(tmp_path, "a", "a", command).could_not_run


def result(verdict: Verdict, score: float) -> VerificationResult:
    return VerificationResult(verdict, score, [Signal("applies", 1.0, 0.05, "")], "", None, None)


@pytest.mark.parametrize(
    ("verdict", "score", "expected"),
    [("verified", 0.9, 0.864), ("verified", 0.7, 0.7), ("unverified", 0.5, 0.48)],
)
def test_a_new_finding_lowers_the_score_a_little_within_the_verdict(
    verdict: Verdict, score: float, expected: float
) -> None:
    judged = with_findings(result(verdict, score), [Finding("ruff", ["x.py:1: F401", "b", "c", "d"]), Finding("mypy")])
    assert (judged.verdict, judged.score) == (verdict, expected)
    assert judged.signals[-1] == Signal(
        "lint",
        0.0,
        WEIGHT,
        "`ruff` says with the patch: x.py:1: F401 | b | c | and 1 more lines. `mypy` says nothing new.",
    )


def test_nothing_new_raises_no_score_and_no_answer_is_no_signal() -> None:
    assert with_findings(result("unverified", 0.5), [Finding("ruff")]).score == 0.5
    judged = with_findings(result("unverified", 0.5), [Finding("ruff", could_not_run="not found")])
    assert (judged.score, judged.signals[-1].value) == (0.5, None)
