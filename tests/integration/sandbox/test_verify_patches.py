"""The verdict on right, wrong, breaking and cheating patches, in real sandboxes."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sandbox.ahead import SandboxesAhead
from sandbox.results import TestCommand, VerificationResult
from sandbox.testing import discover
from sandbox.types import Backend, Sandbox, SandboxSpec
from sandbox.verify import VerifyRequest, run_baseline, verify
from tests.support.backends import LABELS, backend
from tests.support.small_project import NEW_TEST, SOURCE, TESTS, SmallProject, small_project

__all__ = ["backend"]

FIXED = SOURCE.replace(" - 1)", ")").replace("/ (len(numbers))", "/ len(numbers)")
FAILING = TESTS + NEW_TEST
CONFIG = "[tool.pytest.ini_options]\npythonpath = ['.']\n"
FORGED = """import pytest


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport():
    outcome = yield
    outcome.get_result().outcome = 'passed'
"""


class Bench:
    def __init__(self, backend: Backend, root: Path) -> None:
        self.backend = backend
        self.root = root

    def project(self, **changes: str | None) -> SmallProject:
        names = {"tests": "tests/test_stats.py", "source": "stats.py", "config": "pytest.ini"}
        return small_project(self.root, {names[name]: content for name, content in changes.items()})

    def request(self, project: SmallProject, patch: str, **changes: Any) -> VerifyRequest:
        command = discover(project.archive(self.root / "base.tar"), None)
        request = VerifyRequest(project.sha, patch, self.backend.ensure_base(), LABELS, command, test_timeout_s=60)
        return replace(request, **changes)

    def verify(self, project: SmallProject, patch: str, **changes: Any) -> VerificationResult:
        return verify(self.request(project, patch, **changes), self.backend, project.mirror)


def signal(result: VerificationResult, name: str) -> float | None:
    return next(signal.value for signal in result.signals if signal.name == name)


@pytest.fixture
def bench(backend: Backend, tmp_path: Path) -> Bench:
    return Bench(backend, tmp_path)


def test_a_fix_of_a_failing_test_is_verified(bench: Bench) -> None:
    project = bench.project(tests=FAILING)
    result = bench.verify(project, project.patch({"stats.py": FIXED}))
    assert result.verdict == "verified"
    assert result.fail_to_pass == ["tests/test_stats.py::test_mean"]
    assert result.score >= 0.9
    assert "1 test that failed without the patch passes with it" in result.summary
    assert result.before is not None
    assert result.after is not None
    assert (result.before.passed, result.before.failed, result.after.passed) == (2, 1, 3)


@pytest.mark.parametrize("folder", ["tests", "tests/deep"])
def test_a_fix_of_what_a_conftest_imports_is_verified(bench: Bench, folder: str) -> None:
    """Without it pytest ends before it collects anything, or collects nothing of that folder."""
    files = {f"{folder}/conftest.py": "import stats\n", f"{folder}/test_stats.py": TESTS, "stats.py": "def total(:\n"}
    project = small_project(bench.root, {"tests/test_stats.py": None, **files})
    result = bench.verify(project, project.patch({"stats.py": SOURCE}))
    assert (result.verdict, result.measured) == ("verified", True)
    assert result.fail_to_pass == [
        f"{folder}/test_stats.py::test_total",
        f"{folder}/test_stats.py::test_total_of_nothing",
    ]
    assert bench.verify(project, project.patch({"stats.py": "def total(:\n    pass\n"})).verdict == "unverified"


def test_no_sandbox_is_started_that_the_verification_does_not_use(bench: Bench) -> None:
    opened: list[Sandbox] = []

    class Counting:
        def open(self, spec: SandboxSpec) -> Sandbox:
            opened.append(bench.backend.open(spec))
            return opened[-1]

    project = bench.project(tests=FAILING)
    request = bench.request(project, project.patch({"stats.py": FIXED}))
    spec = SandboxSpec(request.image, request.labels, request.limits)
    with SandboxesAhead(Counting(), spec) as sandboxes:
        assert verify(request, sandboxes, project.mirror).verdict == "verified"
    # The tests without the patch and with it, and both again: what changed must repeat itself.
    assert len(opened) == 4


def test_a_fix_with_a_test_that_reproduces_is_verified(bench: Bench) -> None:
    project = bench.project()
    result = bench.verify(project, project.patch({"stats.py": FIXED, "tests/test_stats.py": FAILING}))
    assert result.verdict == "verified"
    assert result.fail_to_pass == ["tests/test_stats.py::test_mean"]
    assert signal(result, "reproduction") == 1.0
    evidence = result.evidence
    assert (evidence.fixed, evidence.reproductions, evidence.idle) == ([], ["tests/test_stats.py::test_mean"], [])
    assert evidence.test_files == [("modified", "tests/test_stats.py")]
    assert evidence.by_hand is not None
    assert evidence.by_hand.proof == "python3 -m pytest tests/test_stats.py::test_mean"
    assert evidence.by_hand.own_tests == ["tests/test_stats.py"]
    assert signal(result, "tests_not_weakened") == 1.0


def test_a_test_that_passes_anyway_proves_nothing(bench: Bench) -> None:
    project = bench.project()
    idle = TESTS + "\n\ndef test_idle():\n    assert True\n"
    result = bench.verify(project, project.patch({"stats.py": FIXED, "tests/test_stats.py": idle}))
    assert result.verdict == "unverified"
    assert signal(result, "reproduction") == 0.0
    assert result.evidence.idle == ["tests/test_stats.py::test_idle"]
    assert result.score <= 0.6


def test_a_change_that_leaves_the_failing_test_failing_is_unverified(bench: Bench) -> None:
    project = bench.project(tests=FAILING)
    result = bench.verify(project, project.patch({"stats.py": SOURCE.replace("- 1", "- 2")}))
    assert result.verdict == "unverified"
    assert signal(result, "target_fixed") == 0.0


def test_a_fix_that_breaks_another_test_is_breaking(bench: Bench) -> None:
    project = bench.project(tests=FAILING)
    result = bench.verify(project, project.patch({"stats.py": FIXED.replace("result = 0", "result = 0 or None")}))
    assert result.verdict == "breaking"
    assert set(result.pass_to_fail) == {"tests/test_stats.py::test_total", "tests/test_stats.py::test_total_of_nothing"}
    assert result.score <= 0.2
    assert "breaks 2 tests" in result.summary


def test_a_syntax_error_is_breaking_and_named(bench: Bench) -> None:
    project = bench.project()
    result = bench.verify(project, project.patch({"stats.py": SOURCE + "def ("}))
    assert result.verdict == "breaking"
    assert signal(result, "files_parse") == 0.0


@pytest.mark.parametrize(
    "cheat",
    [
        TESTS,
        FAILING.replace("== 2", "== 3"),
        FAILING.replace("def test_mean", "import pytest\n\n\n@pytest.mark.xfail\ndef test_mean"),
        None,
    ],
    ids=["deletes the test", "bends the assertion", "expects the failure", "deletes the file"],
)
@pytest.mark.parametrize("disguise", [{}, {"stats.py": SOURCE + "\n# a change\n"}], ids=["bare", "disguised"])
def test_a_patch_that_silences_the_failing_test_is_never_verified(
    bench: Bench, cheat: str | None, disguise: dict[str, str | bytes | None]
) -> None:
    project = bench.project(tests=FAILING)
    result = bench.verify(project, project.patch({"tests/test_stats.py": cheat, **disguise}))
    assert result.verdict in ("unverified", "breaking")
    assert not result.fail_to_pass
    assert result.score <= 0.6


def test_a_conftest_that_skips_everything_is_never_verified(bench: Bench) -> None:
    project = bench.project(tests=FAILING)
    conftest = "import pytest\n\n\ndef pytest_collection_modifyitems(items):\n    items.clear()\n"
    result = bench.verify(project, project.patch({"conftest.py": conftest, "stats.py": SOURCE + "# x\n"}))
    assert result.verdict in ("unverified", "breaking")
    assert not result.fail_to_pass


@pytest.mark.parametrize(
    "plug",
    [
        {".pytest.ini": "[pytest]\npythonpath = .\naddopts = -p forged\n"},
        {
            "x-1.dist-info/METADATA": "Name: x\nVersion: 1\n",
            "x-1.dist-info/entry_points.txt": "[pytest11]\nx = forged\n",
        },
    ],
    ids=["a hidden configuration", "an entry point"],
)
def test_a_plugin_that_another_file_names_is_never_verified(bench: Bench, plug: dict[str, str]) -> None:
    project = small_project(bench.root, {"tests/test_stats.py": FAILING, "pytest.ini": None, "pyproject.toml": CONFIG})
    result = bench.verify(project, project.patch({"forged.py": FORGED, "stats.py": SOURCE + "# x\n", **plug}))
    assert result.verdict == "unverified"
    assert not result.fail_to_pass


def test_a_plugin_of_a_project_below_the_top_is_never_verified(bench: Bench) -> None:
    files = {"tests/test_stats.py": None, "pytest.ini": None, "stats.py": None}
    below = {"a/tests/test_stats.py": FAILING, "a/pyproject.toml": CONFIG, "a/stats.py": SOURCE}
    project = small_project(bench.root, {**files, **below})
    plugged = {"a/pyproject.toml": CONFIG + "addopts = '-p forged'\n", "a/forged.py": FORGED}
    command = TestCommand("cd a && python3 -m pytest", "pytest", "test")
    result = bench.verify(project, project.patch({"a/stats.py": SOURCE + "# x\n", **plugged}), test_command=command)
    assert result.verdict == "unverified"
    assert not result.fail_to_pass


@pytest.mark.parametrize("name", ["conftest.py", "tests/conftest.py", "forged.py"])
def test_a_plugin_that_calls_everything_passed_is_never_verified(bench: Bench, name: str) -> None:
    project = small_project(bench.root, {"tests/test_stats.py": FAILING, "pytest.ini": None, "pyproject.toml": CONFIG})
    plugged = {} if name.endswith("conftest.py") else {"pyproject.toml": CONFIG + "addopts = '-p forged'\n"}
    result = bench.verify(project, project.patch({name: FORGED, "stats.py": SOURCE + "# x\n", **plugged}))
    assert result.verdict == "unverified"
    assert not result.fail_to_pass


def test_a_test_that_writes_over_other_tests_is_named_and_proves_nothing(bench: Bench) -> None:
    project = bench.project(tests=FAILING)
    # Collected first: the failing test is replaced before it is read.
    attack = (
        "from pathlib import Path\n\nother = Path(__file__).with_name('test_stats.py')\n"
        "other.write_text(other.read_text().replace('== 2', '== 3'))\n"
    )
    result = bench.verify(project, project.patch({"tests/test_0.py": attack, "stats.py": SOURCE + "# x\n"}))
    assert result.verdict == "unverified"
    assert "wrote over test files (tests/test_stats.py)" in result.summary
    assert result.score <= 0.3
    # The next run begins from the tree as it was.
    assert bench.verify(project, project.patch({"stats.py": FIXED})).verdict == "verified"


def test_a_makefile_that_runs_nothing_proves_nothing(bench: Bench) -> None:
    project = small_project(bench.root, {"tests/test_stats.py": FAILING, "Makefile": "test:\n\tpython3 -m pytest -q\n"})
    patch = project.patch({"Makefile": "test:\n\ttrue\n", "stats.py": SOURCE + "# x\n"})
    result = bench.verify(project, patch, test_command=TestCommand("make test", "exit_code", "Makefile"))
    assert result.verdict == "unverified"
    assert not result.fail_to_pass
    assert result.evidence.test_files == [("modified", "Makefile")]


def test_a_source_that_ends_the_test_run_early_is_not_believed(bench: Bench) -> None:
    project = bench.project(tests=FAILING)
    result = bench.verify(project, project.patch({"stats.py": "import os\nos._exit(0)\n"}))
    assert result.verdict == "breaking"


def test_own_tests_that_fail_are_told(bench: Bench) -> None:
    project = bench.project()
    wrong = FAILING.replace("== 2", "== 7")
    result = bench.verify(project, project.patch({"stats.py": FIXED, "tests/test_stats.py": wrong}))
    assert result.verdict == "unverified"
    assert "1 test of the patch's own fails" in result.summary
    assert result.score <= 0.3


def test_tests_that_hang_with_the_patch_are_breaking(bench: Bench) -> None:
    project = bench.project()
    hanging = SOURCE.replace("result = 0", "result = 0\n    while True:\n        pass")
    result = bench.verify(project, project.patch({"stats.py": hanging}), test_timeout_s=5)
    assert result.verdict == "breaking"
    assert "do not end within 5 seconds" in result.summary


def test_a_repository_without_tests_is_unverified_and_says_so(bench: Bench) -> None:
    project = bench.project(tests=None, config=None)
    result = bench.verify(project, project.patch({"stats.py": FIXED}))
    assert result.verdict == "unverified"
    assert "no tests" in result.summary
    assert result.before is None
    assert result.score <= 0.4


def test_an_example_of_the_issue_that_holds_only_with_the_patch_is_proof(bench: Bench) -> None:
    project = bench.project()
    text = "It should be:\n\n```python\n>>> from stats import mean\n>>> mean([1, 2, 3])\n2.0\n```\n"
    result = bench.verify(project, project.patch({"stats.py": FIXED}), task_text=text)
    assert result.verdict == "verified"
    assert signal(result, "examples") == 1.0


def test_wrong_output_in_an_issue_proves_nothing(bench: Bench) -> None:
    project = bench.project()
    text = "I get:\n\n>>> from stats import mean\n>>> mean([1, 2, 3])\n3.0\n"
    result = bench.verify(project, project.patch({"stats.py": FIXED}), task_text=text)
    assert result.verdict == "unverified"
    assert signal(result, "examples") is None


@pytest.mark.parametrize("patch", ["", "  \n"])
def test_an_empty_patch_is_empty(bench: Bench, patch: str) -> None:
    result = bench.verify(bench.project(), patch)
    assert (result.verdict, result.score) == ("empty", 0.0)


def test_a_patch_for_another_tree_is_rejected(bench: Bench) -> None:
    project = bench.project()
    patch = project.patch({"stats.py": FIXED}).replace("-    return total(numbers) / (", "-    return all(numbers) / (")
    result = bench.verify(project, patch)
    assert (result.verdict, result.score) == ("rejected", 0.0)
    assert "does not apply" in result.summary


def test_a_blocked_path_is_rejected_without_running_anything(bench: Bench) -> None:
    project = bench.project()
    result = bench.verify(project, project.patch({".github/workflows/ci.yml": "on: push\n"}))
    assert result.verdict == "rejected"
    assert result.after is None


def test_a_known_baseline_is_used(bench: Bench) -> None:
    project = bench.project(tests=FAILING)
    request = bench.request(project, project.patch({"stats.py": FIXED}))
    before = run_baseline(request, bench.backend, project.mirror)
    started = time.monotonic()
    result = verify(replace(request, before=before), bench.backend, project.mirror)
    assert result.before is before
    assert result.verdict == "verified"
    assert time.monotonic() - started < 60


@pytest.mark.parametrize(
    "command",
    [
        TestCommand("python3 -m unittest discover -v -s tests -t .", "unittest", "test"),
        TestCommand("python3 -m pytest -q tests > /dev/null", "exit_code", "test"),
        TestCommand("cd . && python3 -m pytest tests", "pytest", "test"),
    ],
    ids=lambda command: str(command.runner),
)
def test_other_runners_come_to_the_same_verdicts(bench: Bench, command: TestCommand) -> None:
    tests = (
        "import unittest\n\nfrom stats import mean, total\n\n\nclass StatsTest(unittest.TestCase):\n"
        "    def test_total(self):\n        self.assertEqual(total([1, 2]), 3)\n\n"
        "    def test_mean(self):\n        '''The mean.'''\n        self.assertEqual(mean([1, 2, 3]), 2)\n"
    )
    project = small_project(bench.root, {"tests/test_stats.py": tests, "tests/__init__.py": ""})
    good = bench.verify(project, project.patch({"stats.py": FIXED}), test_command=command)
    assert good.verdict == "verified"
    bad = bench.verify(project, project.patch({"stats.py": "total = mean = None\n"}), test_command=command)
    assert bad.verdict == ("unverified" if command.runner == "exit_code" else "breaking")
