"""Results that do not repeat themselves are told from those that do: runs with scripted results."""

import tarfile
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from sandbox.results import TestCommand
from sandbox.types import CommandResult, FileDigest, Sandbox, SandboxSpec
from sandbox.verify import VerifyRequest, verify
from tests.support.patches import change

T = "tests/test_a.py"


class ScriptedBackend:
    """Each sandbox that it opens has one run of the tests to give: a string of names, capitals fail. With `!` the
    file cannot be collected."""

    def __init__(self, runs: Sequence[str]) -> None:
        self.runs = deque(runs)
        self.open_sandboxes = 0

    def open(self, spec: SandboxSpec) -> Sandbox:
        self.open_sandboxes += 1
        return ScriptedSandbox(self, self.runs.popleft())

    def __getattr__(self, name: str) -> object:
        raise NotImplementedError(name)


class ScriptedSandbox:
    def __init__(self, backend: ScriptedBackend, run: str) -> None:
        self._backend = backend
        self._run = run

    def execute(self, command: str, *, timeout_s: float, trusted: bool = False) -> CommandResult:
        if "pytest" not in command:
            return CommandResult("PARSED[]\n", 0, False, 0.0)
        return CommandResult("", int("!" in self._run or self._run != self._run.lower()), False, 0.1)

    def read_file(self, path: str, *, limit: int = 0) -> bytes | None:
        if not path.endswith(".xml"):
            return None
        cases = "".join(
            f'<testcase classname="tests.test_a" name="{name.lower()}" file="{T}">'
            f"{'<failure/>' if name.isupper() else ''}</testcase>"
            for name in self._run.strip("!")
        )
        if "!" in self._run:
            cases += '<testcase classname="" name="tests.test_a"><error/></testcase>'
        return f"<testsuites><testsuite>{cases}</testsuite></testsuites>".encode()

    def put_tree(self, archive: Path) -> None: ...

    def put_file(self, path: str, content: bytes) -> None: ...

    def changed(self, files: Mapping[str, FileDigest]) -> list[str]:
        return []

    def close(self) -> None:
        self._backend.open_sandboxes -= 1


class NoTrees:
    def archive(self, treeish: str, destination: Path) -> None:
        tarfile.open(destination, "w").close()

    def tree_with_patch(self, base_sha: str, patch: str) -> str:
        return "tree"


def outcome(runs: Sequence[str]) -> Mapping[str, object]:
    backend = ScriptedBackend(runs)
    command = TestCommand("python3 -m pytest", "pytest", "test")
    request = VerifyRequest("base", change("src/a.py"), "image", {"task": "1"}, command)
    result = verify(request, backend, NoTrees())
    assert not backend.runs, "a run was not asked for"
    assert backend.open_sandboxes == 0
    return {
        "verdict": result.verdict,
        "fixed": [test.removeprefix(f"{T}::") for test in result.fail_to_pass],
        "broken": [test.removeprefix(f"{T}::") for test in result.pass_to_fail],
    }


def test_a_failure_that_repeats_itself_is_broken() -> None:
    assert outcome(["ab", "aB", "aB"]) == {"verdict": "breaking", "fixed": [], "broken": ["b"]}


def test_a_failure_that_does_not_is_flaky() -> None:
    assert outcome(["ab", "aB", "ab"]) == {"verdict": "unverified", "fixed": [], "broken": []}


def test_a_fix_that_repeats_itself_is_a_fix() -> None:
    # before, after, after again, before again
    assert outcome(["Ab", "ab", "ab", "Ab"]) == {"verdict": "verified", "fixed": ["a"], "broken": []}


def test_a_fix_that_fails_the_second_time_is_flaky() -> None:
    assert outcome(["Ab", "ab", "Ab", "Ab"])["verdict"] == "unverified"


def test_a_fix_of_what_passes_without_it_is_flaky() -> None:
    assert outcome(["Ab", "ab", "ab", "ab"])["verdict"] == "unverified"


def test_nothing_is_run_again_where_nothing_changed() -> None:
    assert outcome(["Ab", "Ab"])["verdict"] == "unverified"


def test_the_tests_of_a_file_that_can_be_imported_again_are_fixed() -> None:
    assert outcome(["!", "ab", "ab", "!"]) == {"verdict": "verified", "fixed": ["a", "b"], "broken": []}


def test_a_file_that_is_imported_only_now_and_then_is_flaky() -> None:
    assert outcome(["!", "ab", "ab", "ab"])["verdict"] == "unverified"


def test_a_test_that_fails_once_its_file_is_imported_is_not_fixed() -> None:
    assert outcome(["!", "aB", "aB", "!"]) == {"verdict": "verified", "fixed": ["a"], "broken": []}
    assert outcome(["!", "AB"])["verdict"] == "unverified"


@pytest.mark.parametrize(
    ("runs", "verdict"),
    [
        # before, after, after again, before again
        ([False, True, True, False], "verified"),
        ([False, True, False, False], "unverified"),
        ([False, True, True, True], "unverified"),
        ([False, False], "unverified"),
        ([True, True], "unverified"),
    ],
)
def test_an_example_of_the_task_counts_where_it_repeats_itself(
    monkeypatch: pytest.MonkeyPatch, runs: list[bool], verdict: str
) -> None:
    left = deque(runs)
    monkeypatch.setattr("sandbox.verify.run_examples", lambda *_, **__: {"example 1": left.popleft()})
    backend = ScriptedBackend(["ab"] * (len(runs) + 2))
    command = TestCommand("python3 -m pytest", "pytest", "test")
    text = "It should be so:\n\n>>> f()\n1\n"
    request = VerifyRequest("base", change("src/a.py"), "image", {"task": "1"}, command, task_text=text)
    assert verify(request, backend, NoTrees()).verdict == verdict
    assert not left
    assert not backend.runs
