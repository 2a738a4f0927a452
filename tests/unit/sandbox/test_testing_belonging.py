"""Which tests belong to which files, and that tens of thousands of both are still compared in seconds."""

import time
from pathlib import Path

import pytest

from sandbox.comparison import compare, proving
from sandbox.results import MAX_RESULTS, TOO_MANY, TestCommand, TestReport, TestStatus
from sandbox.testing import run_tests
from sandbox.testing.belonging import belongs_to
from tests.support.local_sandbox import LocalSandbox

IDS, SECONDS = 20_000, 10.0
"""Far more than these take, far less than each id beside each other would."""


def report(ids: list[str], status: TestStatus) -> TestReport:
    return TestReport("t", dict.fromkeys(ids, status), 1, False, 1.0, "")


@pytest.mark.parametrize(
    ("test", "file"),
    [
        ("tests/test_a.py::test_b", "tests/test_a.py"),
        ("tests/test_a.py", "tests/test_a.py"),
        ("tests.test_a.Case.test_b", "tests/test_a.py"),
        ("tests.test_a", "tests/test_a.py"),
        ("core/o.SumTest$WhenEmpty$And.More::isZero", "core/src/test/java/o/SumTest.java"),
        ("o.SumTest::adds", "src/test/kotlin/o/SumTest.kt"),
    ],
)
def test_a_test_belongs_to_the_file_that_its_id_names(test: str, file: str) -> None:
    assert belongs_to(["tests/test.py", "web/src/test/java/o/SumTest.java", file, "z.py"])(test)
    assert not belongs_to(["tests/test.py", "tests/test_a2.py", "web/src/test/java/o/SumTests.java", "z.py"])(test)


def test_a_module_that_begins_like_another_hides_neither() -> None:
    belongs = belongs_to(["a.py", "a/b.py", "a_b.py"])
    assert [test for test in ("a.b.T.t", "a_b.T.t", "a.T.t", "a_c.T.t") if belongs(test)] == [
        "a.b.T.t",
        "a_b.T.t",
        "a.T.t",
    ]


@pytest.mark.parametrize("file", ["s{}.py", "m{}/o/SumTest.java"])
def test_very_many_tests_and_files_are_compared_in_seconds(file: str) -> None:
    uncollected = report([file.format(number) for number in range(IDS)], "error")
    good = report([f"x{number}/o.SumTest::adds" for number in range(IDS)], "passed")
    started = time.monotonic()
    assert proving(report([], "passed"), uncollected, good) == set()
    assert len(compare(good, uncollected, ["other.py"]).vanished) == IDS
    assert time.monotonic() - started < SECONDS


@pytest.mark.parametrize("more", [0, 1])
def test_a_run_has_no_more_results_than_can_be_compared(tmp_path: Path, more: int) -> None:
    sandbox = LocalSandbox(tmp_path)
    cases = "".join(f'<testcase classname="a" name="{number}"/>' for number in range(MAX_RESULTS + more))
    sandbox.put_file("results.xml", f"<testsuite>{cases}</testsuite>".encode())
    copy = "cp results.xml $(echo $PYTEST_ADDOPTS | grep -o 'junitxml=[^ ]*' | cut -d= -f2)"
    report = run_tests(sandbox, TestCommand(copy, "pytest", "test"), timeout_s=10)
    assert (len(report.results), report.note) == ((0, TOO_MANY) if more else (MAX_RESULTS, ""))
