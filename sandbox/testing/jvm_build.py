"""Reads what Maven and Gradle leave of a run: the junit XML of each module, and what the build says of itself.

A test's id is its module's folder, its class as Java names it and its own name:
`core/org.example.SumTest$WhenEmpty::isZero`, without the folder for a build of one module. A class whose set-up fails
has an id without `::`. A source file that does not compile is an error of its own, like a Python file that cannot be
collected: the tests behind it have no results.
"""

import re

from sandbox.results import TestStatus
from sandbox.testing import junit
from sandbox.types import WORKSPACE

REPORTS = {
    "maven": ("target/surefire-reports/TEST-*.xml", "target/failsafe-reports/TEST-*.xml"),
    "gradle": ("build/test-results/*/TEST-*.xml",),
}
"""Where a module's results lie, below its folder."""

PAST_FAILURES = "-Dmaven.test.failure.ignore"
"""Has Maven end well whatever the tests do."""
SHELLS = ("bash", "sh")
"""In a test command before a wrapper that has no x bit."""
_PRODUCTS = {"maven": "target", "gradle": "build"}
_MODULE = re.compile(r"\./(?:(.+?)/)?(?:target/(?:surefire|failsafe)-reports|build/test-results/[^/]+)/TEST-[^/]+\.xml")
_LANGUAGES = ("java", "kt", "groovy", "scala")
_SOURCE = rf"{WORKSPACE}/([^\s:]+\.(?:{'|'.join(_LANGUAGES)}))"
_COMPILE_ERROR = re.compile(
    # Maven's javac, then Kotlin in either build, then javac as Gradle shows it: behind a task's name, or indented.
    rf"^\[ERROR\] (?:file://)?{_SOURCE}:(?:\[\d+,\d+\]| ?\(\d+, ?\d+\))"
    rf"|^e: (?:file://)?{_SOURCE}:"
    rf"|^(?::[\w.:-]+|[ \t]{{1,8}})?{_SOURCE}:\d+: error:",
    re.MULTILINE,
)
_TOTAL = re.compile(
    r"^(\[[A-Z]+\] )?Tests run: \d+, Failures: (\d+), Errors: (\d+), Skipped: \d+(?:, Flakes: \d+)?\s*$"
)
_ENDS = {
    "maven": re.compile(r"^\[ERROR\] Failed to execute goal (.*)$", re.MULTILINE),
    "gradle": re.compile(r"^\* What went wrong:\n(.*(?:\n *> .*)*)$", re.MULTILINE),
}
"""Each thing that broke a build, in its own words."""
_FAILING_TESTS = re.compile(r"There (?:are|were) (?:test failures|failing tests)")
_NOT_COMPILED = re.compile(r"Compilation (?:failure|failed|error)")
_UNFETCHED = re.compile(r"in offline mode|for offline mode")


def module_of(build: str, path: str) -> str | None:
    """Return the folder of the module whose results a file has, with its slash, or an empty string for the build's own.

    `path` is that of `find .`, from the root of the tree. None: it lies in no module, or in what a module built. The
    latter is a build that a test ran, which may well fail.
    """
    found = _MODULE.fullmatch(path)
    if found is None or _PRODUCTS[build] in (found[1] or "").split("/"):
        return None
    return f"{found[1]}/" if found[1] else ""


def results(module: str, content: bytes) -> dict[str, TestStatus]:
    """Return the results in one file of a module, which `module_of` names.

    Raises:
        JunitError: it cannot be read.
    """
    return {module + _of_class(test): status for test, status in junit.parse(content).items()}


def not_compiled(output: str) -> dict[str, TestStatus]:
    """Return the source files with compile errors, from the root of the tree, each as an error."""
    return {next(filter(None, found.groups())): "error" for found in _COMPILE_ERROR.finditer(output)}


def is_source(test: str) -> bool:
    """Return whether an id is that of a source file that does not compile."""
    return "::" not in test and test.rpartition(".")[2] in _LANGUAGES


def counts_failures(output: str) -> bool | None:
    """Return whether Maven's own totals tell of failed tests, or None where it shows none (`-q`)."""
    totals = [found for line in output.splitlines() if (found := _TOTAL.match(line))]
    own = [total for total in totals if total[1]] or totals  # a test may print such a line; old Surefires have no level
    return any(total[2] != "0" or total[3] != "0" for total in own) if own else None


def unfinished(build: str, output: str, *, files_are_named: bool) -> str:
    """Return why a build that failed has not run all its tests, or nothing where failed tests are all that is wrong,
    and source files that do not compile where the output names them. A build that gives no reason was killed.
    """
    known = [_FAILING_TESTS, _NOT_COMPILED] if files_are_named else [_FAILING_TESTS]
    reasons = _ENDS[build].findall(output)
    unknown = [reason for reason in reasons if not any(each.search(reason) for each in known)]
    if _UNFETCHED.search(output) and (unknown or not reasons):
        return "The build needs something that its set-up has not fetched."
    if any(_NOT_COMPILED.search(reason) for reason in unknown):
        return "The sources do not compile."
    return "The build broke before its tests had come to their end." if unknown or not reasons else ""


def is_class_of(name: str, path: str) -> bool:
    """Return whether a class (a test's id up to its `::`) is one that the source file at `path` is named after."""
    stem, _, language = path.rpartition(".")
    folder, _, of_class = name.rpartition("/")
    source = of_class.split("$", 1)[0].replace(".", "/")
    in_module = not folder or path.startswith(f"{folder}/")
    return language in _LANGUAGES and in_module and f"/{stem}".endswith(f"/{source}")


def _of_class(test: str) -> str:
    """A class that fails before its first test is told as a test without a name, or with the name of its class."""
    of_class, _, name = test.partition("::")
    return of_class if name in ("", of_class) else test
