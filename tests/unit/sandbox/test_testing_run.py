"""Running real pytest and unittest, and what is not believed."""

import contextlib
import time
import tracemalloc
from pathlib import Path

import pytest

from sandbox.results import TestCommand, TestReport
from sandbox.testing import cargo_output, go_json, junit, run_tests, tap, unittest_output
from sandbox.testing.discovery import PYTEST, UNITTEST
from sandbox.testing.rootdir import from_the_top
from tests.support.local_sandbox import LocalSandbox

RICH = """
import unittest

import pytest


def test_good(): pass
def test_bad(): assert False
@pytest.mark.skip
def test_skipped(): pass
@pytest.mark.xfail
def test_expected(): assert False
@pytest.mark.parametrize("x", ["a::b", "<&>"])
def test_many(x): pass
class TestIn:
    class TestDeep:
        def test_deep(self): pass
@pytest.fixture
def broken(): raise ValueError
def test_setup(broken): pass
@pytest.fixture
def late():
    yield
    raise ValueError
def test_teardown(late): pass
class Case(unittest.TestCase):
    def test_case(self): pass
"""


@pytest.fixture
def box(tmp_path: Path) -> LocalSandbox:
    return LocalSandbox(tmp_path / "box")


def run(box: LocalSandbox, files: dict[str, str], command: str = PYTEST, **changes: object) -> TestReport:
    for name, content in files.items():
        (box.workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (box.workspace / name).write_text(content)
    (box.workspace / "pytest.ini").touch()
    # The tests' own interpreter has pytest; the machine's may not.
    import sys

    line = command.replace("python3", sys.executable, 1)
    runner = "unittest" if "unittest" in command else "pytest"
    only = changes.pop("only", ())
    assert isinstance(only, tuple)
    return run_tests(box, TestCommand(line, runner, "test"), timeout_s=30, only=only)  # type: ignore[arg-type]


def test_each_test_has_its_node_id_and_status(box: LocalSandbox) -> None:
    report = run(box, {"tests/test_rich.py": RICH})
    assert report.note == ""
    assert report.exit_code == 1
    at = "tests/test_rich.py::"
    assert report.results == {
        at + "test_good": "passed",
        at + "test_bad": "failed",
        at + "test_skipped": "skipped",
        at + "test_expected": "skipped",
        at + "test_many[a::b]": "passed",
        at + "test_many[<&>]": "passed",
        at + "TestIn::TestDeep::test_deep": "passed",
        at + "test_setup": "error",
        at + "test_teardown": "error",
        at + "Case::test_case": "passed",
    }


def test_a_module_that_cannot_be_collected_is_an_error_and_the_others_run(box: LocalSandbox) -> None:
    report = run(box, {"tests/test_a.py": "import nothing_there\n", "tests/test_b.py": "def test_b(): pass\n"})
    assert report.results == {"tests/test_a.py": "error", "tests/test_b.py::test_b": "passed"}


def test_options_of_a_missing_plugin_do_not_stop_the_run(box: LocalSandbox) -> None:
    files = {"setup.cfg": "[tool:pytest]\naddopts = --no-such-plugin=1\n", "test_a.py": "def test_a(): pass\n"}
    for name, content in files.items():
        (box.workspace / name).write_text(content)
    import sys

    report = run_tests(box, TestCommand(f"{sys.executable} -m pytest", "pytest", "t"), timeout_s=30)
    assert report.results == {"test_a.py::test_a": "passed"}


def test_stopping_at_the_first_failure_is_undone(box: LocalSandbox) -> None:
    report = run(box, {"test_a.py": "def test_a(): assert 0\ndef test_b(): pass\n"}, f"{PYTEST} -q")
    assert len(report.results) == 2


def test_a_test_of_which_a_part_is_skipped_is_believed(box: LocalSandbox) -> None:
    test = (
        "import unittest\n"
        "class Case(unittest.TestCase):\n"
        "    def test_parts(self):\n"
        "        with self.subTest(part=1):\n"
        "            self.skipTest('later')\n"
        "    def test_whole(self): pass\n"
    )
    report = run(box, {"test_a.py": test})
    assert report.note == ""
    assert report.results["test_a.py::Case::test_whole"] == "passed"


def test_only_some_files_can_be_asked_for(box: LocalSandbox) -> None:
    files = {"test_a.py": "def test_a(): pass\n", "test b.py": "def test_b(): pass\n"}
    report = run(box, files, only=("test b.py",))
    assert report.results == {"test b.py::test_b": "passed"}


@pytest.mark.parametrize(
    "command",
    ["cd backend && {pytest}", "{pytest} backend", "{pytest} -c backend/pytest.ini", "{pytest} backend/tests"],
)
def test_a_projects_tests_are_named_from_the_top_of_the_tree(box: LocalSandbox, command: str) -> None:
    """As a patch names their files, though pytest names them from the folder of its configuration."""
    files = {
        "backend/pytest.ini": "[pytest]\naddopts = -q\n",
        "backend/tests/test_a.py": "def test_a(): pass\n",
        "backend/tests/test_b.py": "import nothing_there\n",
    }
    report = run(box, files, command.format(pytest=PYTEST))
    assert report.results == {"backend/tests/test_a.py::test_a": "passed", "backend/tests/test_b.py": "error"}
    alone = run(box, {}, command.format(pytest=PYTEST), only=("backend/tests/test_a.py",))
    assert alone.results == {"backend/tests/test_a.py::test_a": "passed"}


@pytest.mark.parametrize(
    "command", ["python3 -m unittest discover -v -s app/tests", "cd app/tests && python3 -m unittest -v"]
)
def test_what_unittest_finds_in_a_folder_is_named_from_the_top_of_the_tree(box: LocalSandbox, command: str) -> None:
    case = "import unittest\nclass Case(unittest.TestCase):\n    def test_a(self): pass\n"
    report = run(box, {"app/tests/test_a.py": case, "app/tests/test_b.py": "import nothing_there\n"}, command)
    assert report.note == ""
    assert report.results == {"app.tests.test_a.Case.test_a": "passed", "app/tests/test_b.py": "error"}
    alone = run(box, {}, command, only=("app/tests/test_a.py",))
    assert alone.results == {"app.tests.test_a.Case.test_a": "passed"}


@pytest.mark.parametrize("told", ["rootdir: /workspace/a b/c", "rootdir: /workspace/a b/c, configfile: pytest.ini"])
def test_the_root_that_pytest_tells_is_where_its_names_begin(box: LocalSandbox, told: str) -> None:
    box.put_file("a b/c/test_a.py", b"")
    named = from_the_top(box, PYTEST, f"platform linux\n{told}\ncollected 1 item\n", {"test_a.py::test_a": "passed"})
    assert named == {"a b/c/test_a.py::test_a": "passed"}


@pytest.mark.parametrize("ending", ["import os; os._exit(0)", "import os; os.abort()", "raise KeyboardInterrupt"])
def test_a_run_that_ends_early_is_not_believed(box: LocalSandbox, ending: str) -> None:
    report = run(box, {"test_a.py": f"def test_a(): assert 0\ndef test_b():\n    {ending}\ndef test_c(): pass\n"})
    assert report.passed == 0
    assert report.note or report.failed


def test_a_forged_result_that_the_exit_code_contradicts_is_not_believed(box: LocalSandbox) -> None:
    forger = (
        "import atexit, os, re\n"
        "path = re.search(r'--junitxml=(\\S+)', os.environ['PYTEST_ADDOPTS'])[1]\n"
        "def forge():\n"
        '    open(path, \'w\').write(\'<testsuite><testcase classname="t" name="x" file="t.py"/></testsuite>\')\n'
        "atexit.register(forge)\n"
        "def test_x(): assert False\n"
    )
    report = run(box, {"t_test.py": forger})
    assert "do not agree" in report.note


def test_a_run_past_its_time_says_so(box: LocalSandbox) -> None:
    import sys

    (box.workspace / "test_a.py").write_text("import time\ndef test_a(): time.sleep(60)\n")
    report = run_tests(box, TestCommand(f"{sys.executable} -m pytest", "pytest", "t"), timeout_s=3)
    assert report.timed_out
    assert report.note == "The tests ran out of time."


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"<testsuite><testcase",
        b"\xff\xfe",
        b'<!DOCTYPE x [<!ENTITY a "b">]><testsuite>&a;</testsuite>',
        "<?xml version='1.0' encoding='utf-16'?><a/>".encode("utf-16"),
    ],
)
def test_torn_and_hostile_results_are_errors(content: bytes) -> None:
    with pytest.raises(junit.JunitError):
        junit.parse(content)


@pytest.mark.parametrize(
    "content",
    [
        b"<testsuite>" + b"<a/>" * 500_000 + b"</testsuite>",
        b"<a>" * 500_000,
        b"<testsuite " + b" ".join(b'a%x=""' % number for number in range(1_200_000)) + b"/>",
    ],
)
def test_results_take_little_more_memory_than_their_file(content: bytes) -> None:
    tracemalloc.start()
    try:
        with contextlib.suppress(junit.JunitError):
            junit.parse(content)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 3 * len(content)


def test_a_test_counts_by_its_own_elements_and_the_worst_of_them() -> None:
    content = b"""<testsuites><testsuite>
        <testcase classname="t" name="a" file="t.py"><skipped/><failure/><properties><error/></properties></testcase>
        <testcase classname="t" name="b" file="t.py"><system-out><failure/></system-out></testcase>
        <testcase classname="t" name="c" file="t.py"/><testcase classname="t" name="c" file="t.py"><error/></testcase>
        <error/></testsuite></testsuites>"""
    assert junit.parse(content) == {"t.py::a": "failed", "t.py::b": "passed", "t.py::c": "error"}


def test_unittest_is_read_from_its_words(box: LocalSandbox) -> None:
    tests = (
        "import unittest\n"
        "class A(unittest.TestCase):\n"
        "    def test_good(self): print('noise ... ok')\n"
        "    def test_bad(self): self.fail()\n"
        "    def test_error(self):\n        '''A doc line.'''\n        raise ValueError\n"
        "    @unittest.skip('later')\n    def test_skipped(self): pass\n"
        "    @unittest.expectedFailure\n    def test_expected(self): self.fail()\n"
    )
    report = run(box, {"test_u.py": tests, "test_broken.py": "import nothing_there\n"}, UNITTEST)
    assert report.note == ""
    assert report.exit_code == 1
    assert {k: v for k, v in report.results.items() if "broken" not in k} == {
        "test_u.A.test_good": "passed",
        "test_u.A.test_bad": "failed",
        "test_u.A.test_error": "error",
        "test_u.A.test_skipped": "skipped",
        "test_u.A.test_expected": "skipped",
    }
    assert [v for k, v in report.results.items() if "broken" in k] == ["error"]


def test_a_unittest_run_without_an_end_has_no_count() -> None:
    assert unittest_output.parse("test_a (t.A.test_a) ... ok\n") == ({"t.A.test_a": "passed"}, None)


@pytest.mark.parametrize(
    ("output", "ran"),
    [("", None), ("Traceback (most recent call last):\n", None), (f"{'-' * 70}\nRan 0 tests in 0.0s\n", 0)],
)
def test_unittest_that_comes_to_no_test_has_no_results(output: str, ran: int | None) -> None:
    assert unittest_output.parse(output) == ({}, ran)


MANY_DIGITS = "9" * 5_000
"""Python makes no number of so many."""


def test_counts_of_thousands_of_digits_are_none() -> None:
    assert unittest_output.parse(f"Ran {MANY_DIGITS} tests in 1s") == ({}, None)
    assert cargo_output.parse(f"test result: ok. {MANY_DIGITS} passed; 0 failed; 0 ignored;") == ({}, 0)
    assert tap.parse(f"# tests {MANY_DIGITS[:1000]}") == ({}, {})


def test_a_summary_of_thousands_of_digits_is_none(box: LocalSandbox) -> None:
    report = run(
        box,
        {"test_it.py": f"def test_it():\n    print('\\n1 passed, {MANY_DIGITS} failed in 1s')\n"},
        f"{PYTEST} -s -qq",
    )
    assert (report.results, report.note) == ({"test_it.py::test_it": "passed"}, "")


def test_many_packages_that_fail_are_read_in_no_time() -> None:
    fails = "".join(f'{{"Action":"fail","Package":"p{number}"}}\n' for number in range(15_000))
    tests = "".join(f'{{"Action":"fail","Package":"p0","Test":"T{number}"}}\n' for number in range(10_000))
    before = time.process_time()
    results = go_json.parse(fails + tests)
    assert time.process_time() - before < 2
    assert "p0" not in results
    assert (results["p0::T1"], results["p1"], len(results)) == ("failed", "error", 24_999)
