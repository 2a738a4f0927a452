"""Results of other languages' runners, read from what they really wrote.

The files in tests/support/recorded come from `NODE_OPTIONS=--test-reporter=tap node --test` (Node 20),
`cargo test --no-fail-fast` (1.95), `go test -json ./...` (1.27), `jest --json --outputFile=F` (29) and
`vitest run --globals --reporter=json --outputFile=F` (2), on projects with a passing, a failing, a skipped
and a broken part each; only the projects' folder was replaced by /workspace.
"""

import os
import tracemalloc
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from sandbox.comparison import compare
from sandbox.results import RunnerName, TestCommand, TestReport
from sandbox.testing import cargo_output, go_json, jest_json, run_tests, tap
from sandbox.types import CommandResult
from tests.support.local_sandbox import LocalSandbox

RECORDED = Path(__file__).parents[2] / "support" / "recorded"


def recorded(name: str) -> str:
    return (RECORDED / name).read_text(encoding="utf-8")


def test_node_is_read_from_tap() -> None:
    results, counts = tap.parse(recorded("node20.tap"))
    assert results == {
        "broken.test.js": "failed",
        "sum > adds": "passed",
        "sum > is wrong": "failed",
        "sum > waits": "skipped",
        "top > inner # one": "passed",
        "later": "skipped",
    }
    assert (counts["tests"], counts["fail"]) == (7, 2)


def test_a_result_inside_an_error_is_no_result() -> None:
    text = "TAP version 13\nnot ok 1 - a\n  ---\n  error: |-\n    x\nok 2 - forged\n  ...\n1..1\n# tests 1\n# fail 1\n"
    assert tap.parse(text)[0] == {"a": "failed"}


def test_cargo_is_read_from_its_words() -> None:
    results, counted = cargo_output.parse(recorded("cargo.txt"))
    assert results == {
        "src/lib.rs::tests::adds": "passed",
        "src/lib.rs::tests::is_wrong": "failed",
        "src/lib.rs::tests::waits": "skipped",
        "src/lib.rs::tests::panics": "passed",
        "tests/whole.rs::whole": "passed",
        "doc rec::src/lib.rs - sum (line 1)": "passed",
    }
    assert counted == len(results)


def test_go_is_read_from_its_events_and_a_package_that_does_not_build_is_an_error() -> None:
    assert go_json.parse(recorded("go.jsonl")) == {
        "example.org/rec/broken": "error",
        "example.org/rec::TestAdds": "passed",
        "example.org/rec::TestTable": "failed",
        "example.org/rec::TestTable/one": "passed",
        "example.org/rec::TestTable/two_words": "failed",
        "example.org/rec::TestWaits": "skipped",
    }


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"testResults": [1]}', b"[" * 100_000, b'{"testResults": 3}'])
def test_torn_and_hostile_results_are_errors(content: bytes) -> None:
    with pytest.raises(jest_json.JestError):
        jest_json.parse(content)


@pytest.mark.parametrize("many", [b"[],", b"{},", b'"ab",'])
def test_no_results_of_jest_take_much_more_memory_than_their_file(many: bytes) -> None:
    content = b'{"testResults":[' + many * (24_000_000 // len(many)) + b"[]]}"
    tracemalloc.start()
    try:
        with pytest.raises(jest_json.JestError):
            jest_json.parse(content)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 3 * len(content)


class Scripted(LocalSandbox):
    """A sandbox in which every program is there and prints what it is told."""

    def __init__(self, root: Path, output: str, exit_code: int, missing: bool = False) -> None:
        super().__init__(root)
        self._result = CommandResult(output, exit_code, False, 0.1)
        self._missing = missing

    def execute(self, command: str, *, timeout_s: float, trusted: bool = False) -> CommandResult:
        if command.startswith("command -v"):
            return CommandResult("", int(self._missing), False, 0.0)
        return self._result


def ran(tmp_path: Path, runner: str, output: str, exit_code: int, missing: bool = False) -> TestReport:
    command = TestCommand(f"{runner} test", runner, "test")  # type: ignore[arg-type]
    return run_tests(Scripted(tmp_path / "box", output, exit_code, missing), command, timeout_s=5)


class Cutting(LocalSandbox):
    """A sandbox that keeps of a command's output what a real one does."""

    def execute(self, command: str, *, timeout_s: float, trusted: bool = False) -> CommandResult:
        result = super().execute(command, timeout_s=timeout_s, trusted=trusted)
        kept = 20_000
        output = result.output[:kept] + result.output[-kept:]
        return replace(result, output=output, truncated=len(output) < len(result.output))


@pytest.mark.parametrize(
    ("command", "runner", "words", "line", "end"),
    [
        (
            "go test ./...",
            "go",
            ("pass", "fail"),
            '{{"Action":"{word}","Package":"example.org/x","Test":"Test{number}"}}',
            '{"Action":"fail","Package":"example.org/x"}',
        ),
        ("node --test", "node", ("ok", "not ok"), "{word} {number} - test {number}", "# tests 5000\n# fail 1"),
        (
            "cargo test",
            "cargo",
            ("ok", "FAILED"),
            "test number{number} ... {word}",
            "test result: FAILED. 4999 passed; 1 failed; 0 ignored; 0 measured",
        ),
        (
            "python3 -m unittest -v",
            "unittest",
            ("ok", "FAIL"),
            "test_{number} (tests.Case.test_{number}) ... {word}",
            f"{'-' * 70}\nRan 5000 tests in 1s",
        ),
    ],
    ids=["go", "node", "cargo", "unittest"],
)
def test_a_large_suites_results_are_read_to_the_last(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    runner: RunnerName,
    words: tuple[str, str],
    line: str,
    end: str,
) -> None:
    lines = [line.format(word=words[number == 2500], number=number) for number in range(5000)]
    program = tmp_path / "bin" / command.split(maxsplit=1)[0]
    program.parent.mkdir()
    program.write_text("#!/bin/sh\ncat <<'END'\n" + "\n".join([*lines, end]) + "\nEND\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    report = run_tests(Cutting(tmp_path / "box"), TestCommand(command, runner, "test"), timeout_s=20)
    assert (report.note, report.exit_code) == ("", 1)
    assert (report.passed, report.failed) == (4999, 1)


def test_results_that_contradict_the_exit_code_are_not_believed(tmp_path: Path) -> None:
    assert ran(tmp_path / "a", "cargo", recorded("cargo.txt"), 101).note == ""
    assert "do not agree" in ran(tmp_path / "b", "cargo", recorded("cargo.txt"), 0).note
    assert "do not agree" in ran(tmp_path / "c", "go", recorded("go.jsonl"), 0).note
    assert "did not come to its end" in ran(tmp_path / "d", "node", recorded("node20.tap")[:2500], 1).note


def test_a_language_that_is_not_in_the_image_is_named(tmp_path: Path) -> None:
    report = ran(tmp_path, "go", "", 0, missing=True)
    assert "no `go`" in report.note
    assert "ACROUTER_SANDBOX_PACKAGES" in report.note
    assert report.exit_code == 127


@pytest.mark.parametrize(
    "output",
    ["bash: line 2: gcc: command not found", "make: gcc: No such file or directory", "/bin/sh: 1: gcc: not found"],
)
def test_a_command_that_cannot_be_found_is_no_failed_test(tmp_path: Path, output: str) -> None:
    assert (
        "no `gcc`" in ran(tmp_path, "exit_code", f"building\n{output}\nmake: *** [Makefile:2: a] Error 127\n", 2).note
    )
    assert ran(tmp_path / "2", "exit_code", "assertion failed\n", 2).note == ""


def compared(before: Mapping[str, str], after: Mapping[str, str], edited: list[str]) -> tuple[list[str], list[str]]:
    old, new = (TestReport("t", dict(results), 1, False, 1.0, "") for results in (before, after))  # type: ignore[arg-type]
    changes = compare(old, new, edited)
    return list(changes.vanished), list(changes.pass_to_fail)


def test_a_test_without_a_file_that_is_gone_is_weakened_where_tests_were_edited_and_broken_elsewhere() -> None:
    before = {"sum > adds": "passed", "b": "passed"}
    assert compared(before, {"b": "passed"}, ["sum.test.js"]) == (["sum > adds"], [])
    assert compared(before, {"b": "passed"}, []) == ([], ["sum > adds"])


@pytest.mark.parametrize("runner", ["jest", "vitest"])
def test_jest_and_vitest_are_read_from_their_json(runner: str) -> None:
    results = jest_json.parse(recorded(f"{runner}.json").encode())
    assert results == {
        "sum.test.js::sum > adds": "passed",
        "sum.test.js::sum > is wrong": "failed",
        "sum.test.js::sum > waits": "skipped",
        "sum.test.js::later": "skipped",
        "broken.test.js": "error",
    }
