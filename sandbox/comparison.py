"""Compares runs of the same tests before and after a patch."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from sandbox.results import TestReport, TestStatus
from sandbox.testing.belonging import belongs_to
from sandbox.testing.jvm_build import is_source

WHOLE = "(all tests)"
"""The one test id of a run of which only the exit code is known."""
_FILE = re.compile(r"\.(?:py|[cm]?[jt]sx?)$")
_DOTTED = re.compile(r"[\w.]+")  # unittest's, which do name it
_BAD = frozenset({"failed", "error"})


@dataclass(frozen=True)
class Comparison:
    """What changed from one run to another. Sorted test ids."""

    fail_to_pass: Sequence[str]
    """With those that pass now of files that could not even be collected (imported, compiled) before."""
    pass_to_fail: Sequence[str]
    """With source files that compile no more."""
    vanished: Sequence[str]
    """Passed before and are skipped or missing now, in files that the patch edits or by a skip anywhere."""


def results_of(report: TestReport | None) -> Mapping[str, TestStatus]:
    """Return a report's results; a run without any is one test that follows the exit code."""
    if report is None or report.timed_out:
        return {} if report is None else dict(report.results)
    if report.results or report.exit_code == _NO_TESTS_COLLECTED:
        return report.results
    return {WHOLE: "passed" if report.exit_code == 0 else "failed"}


_NO_TESTS_COLLECTED = 5  # pytest, and unittest from Python 3.12 on


def compare(
    before: TestReport,
    after: TestReport,
    edited: Sequence[str],
    flaky: Collection[str] = (),
    *,
    changed: Collection[str] = (),
) -> Comparison:
    """Compare two runs. `edited`: the test files that the patch changes; `changed`: all files. `flaky` tests are left
    out.
    """
    old, new = results_of(before), results_of(after)
    functions = {_function(test) for test, status in new.items() if status == "passed"}
    may_be_edited = _may_be_of(edited)
    fail_to_pass, pass_to_fail, vanished = [], [], []
    for test, status in old.items():
        now = new.get(test)
        if test in flaky:
            continue
        if status in _BAD and now == "passed":
            fail_to_pass.append(test)
        elif status == "passed" and now in _BAD:
            pass_to_fail.append(test)
        elif status == "passed" and now == "skipped":
            vanished.append(test)
        elif status == "passed" and now is None and not _still_there(test, functions):
            (vanished if may_be_edited(test) else pass_to_fail).append(test)
    fail_to_pass += _collected_now(old, new, may_be_edited) - set(flaky)
    known = {*old, *edited}
    uncompiled = {test for test in new if is_source(test) and test not in known}
    if any(map(is_source, old)):  # a compiler that gets further finds what was wrong all along
        uncompiled.intersection_update(changed)
    pass_to_fail += uncompiled
    return Comparison(sorted(fail_to_pass), sorted(pass_to_fail), sorted(vanished))


def failing(report: TestReport | None) -> set[str]:
    """Return the tests that fail in a run."""
    return {test for test, status in results_of(report).items() if status in _BAD}


def failing_of(tests: Collection[str], report: TestReport) -> set[str]:
    """Return which of these tests fail in a run, with those of files that cannot be collected in it."""
    fails = failing(report)
    is_uncollected = _is_of(_uncollected(fails))
    nothing_compiles = any(map(is_source, fails))
    return {test for test in tests if test in fails or nothing_compiles or is_uncollected(test)}


def passing(report: TestReport | None) -> set[str]:
    """Return the tests that pass in a run."""
    return {test for test, status in results_of(report).items() if status == "passed"}


def proving(before: TestReport, unfixed: TestReport | None, after: TestReport) -> set[str]:
    """Return the tests that fail in the unfixed tree and pass in the fixed one: same tests, only the source differs.

    A test file that cannot even be collected in the unfixed tree counts for the tests that are new in it.
    """
    if unfixed is None:
        return set()
    fails = failing(unfixed)
    is_of_uncollected = _is_of(_uncollected(fails))
    good = passing(after)
    new = good - set(results_of(before))
    return (good & fails) | {test for test in new if is_of_uncollected(test)}


def _uncollected(fails: Collection[str]) -> list[str]:
    """Return which of the tests that fail are files, packages or classes of which no test could be run."""
    return [test for test in fails if "::" not in test and test != WHOLE]


def _is_of(uncollected: Sequence[str]) -> Callable[[str], bool]:
    """Return a function that says whether a test is of what could not be collected: of its file, its package, or below
    its folder, which is a conftest.py's own.
    """
    belongs = belongs_to(uncollected)
    folders = {name.removesuffix("conftest.py").rstrip("/") for name in uncollected}

    def is_of(test: str) -> bool:
        if belongs(test) or "" in folders:
            return True
        return any(str(folder) in folders for folder in PurePosixPath(test.split("::", 1)[0]).parents)

    return is_of


def _collected_now(
    old: Mapping[str, TestStatus], new: Mapping[str, TestStatus], may_be_edited: Callable[[str], bool]
) -> set[str]:
    """Return the tests that pass now, and had no result because their file could not be collected."""
    gone = _uncollected({test for test, status in old.items() if status in _BAD and test not in new})
    passes = {test for test, status in new.items() if status == "passed" and test not in old}
    found = set(filter(_is_of(gone), passes))
    if any(map(is_source, gone)) and not any(map(is_source, new)):  # a build that does not compile has no tests at all
        found |= {test for test in passes if not may_be_edited(test)}
    return found


def _may_be_of(edited: Sequence[str]) -> Callable[[str], bool]:
    """Return a function that says whether a test is of one of these files, as far as its id tells: many runners' ids
    name no file.
    """
    belongs = belongs_to(edited)

    def may_be(test: str) -> bool:
        if "::" in test and _FILE.search(test.split("::", 1)[0]):
            return belongs(test)
        return belongs(test) or (bool(edited) and not _DOTTED.fullmatch(test))

    return may_be


def _function(test: str) -> str:
    """Some runners name a test by its data alone (`a.SumTest::[1] 3`): then nothing tells the function."""
    function = test.split("[", 1)[0]
    return test if function.endswith("::") else function


def _still_there(test: str, functions: Collection[str]) -> bool:
    """Parametrised tests may change their ids with the data: the function's passing is enough."""
    return "[" in test and _function(test) in functions
