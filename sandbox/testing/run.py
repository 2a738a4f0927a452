"""Runs a repository's tests in a sandbox.

The results of pytest come from a junit file that the process under test writes itself, so hostile code can forge it;
that cannot be ruled out from outside. It is made hard to do by accident or in passing: the file has a random name, and
results, exit code and the summary in the output must agree, else the report carries a note and is not believed.
"""

import re
import secrets
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from sandbox.results import MAX_RESULTS, TOO_MANY, TestCommand, TestReport, TestStatus
from sandbox.testing import copied, junit, rootdir, runners, unittest_output
from sandbox.testing.belonging import belongs_to
from sandbox.testing.discovery import is_plain_pytest
from sandbox.types import WORKSPACE, CommandResult, Sandbox
from templates.escape import plain

_TAIL = 4_000
_MAX_JUNIT = 30_000_000
_USAGE_ERROR, _NO_TESTS = 4, 5  # https://docs.pytest.org/en/stable/reference/exit-codes.html
_CONFTEST = re.compile(rf"^ImportError while loading conftest '{WORKSPACE}/(\S+)'\.$", re.MULTILINE)
_SUMMARY = re.compile(r"^[= ]*((?:\d{1,9} [a-z]+(?:, )?)+) in [\d.:]+ ?s.*$", re.MULTILINE)
# bash, dash, and make, which runs a simple command without a shell.
_NOT_FOUND = re.compile(
    r"^(?:\S+: line \d+: |sh: \d+: |/bin/sh: \d+: |make(?:\[\d+\])?: )([\w.+-]+): "
    r"(?:command not found|not found|No such file or directory)$",
    re.MULTILINE,
)
_ENVIRONMENT = {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0", "PYTHONUNBUFFERED": "1"}


def run_tests(sandbox: Sandbox, command: TestCommand, *, timeout_s: float, only: Sequence[str] = ()) -> TestReport:
    """Run the tests of the tree in the sandbox and return what each one did.

    `only` names test files: with a plain pytest command those alone are run, else all are and the rest is left out.

    Raises:
        SandboxError: the sandbox is gone.
    """
    if command.runner == "pytest":
        return _run_pytest(sandbox, command, timeout_s, only)
    if command.runner in runners.RUNNERS:

        def execute(line: str, environment: Mapping[str, str]) -> CommandResult:
            return sandbox.execute(_with_environment(line, environment), timeout_s=timeout_s)

        # `only` is left out: the ids of most name no file, so all are run and all are told.
        result, reading = runners.run(sandbox, command.runner, command.command, execute)
        return _report(command, result, reading.results, reading.note)
    if command.runner == "unittest":
        path = f"/tmp/acrouter-{secrets.token_hex(16)}"  # noqa: S108  (inside the sandbox)
        line = _with_environment(copied.copying(command.command, path), {})
        result = sandbox.execute(line, timeout_s=timeout_s)
        said = copied.whole(sandbox, result, path)
        results, ran = unittest_output.parse(plain(said.output))
        note = _unittest_note(said, results, ran)
        results_at_top = rootdir.from_the_top(sandbox, command.command, "", results)
        return _report(command, result, _of_files(results_at_top, only), note)
    result = sandbox.execute(_with_environment(command.command, {}), timeout_s=timeout_s)
    return _report(command, result, {}, _exit_code_note(result))


def _exit_code_note(result: CommandResult) -> str:
    """Say what is missing where a command could not even be found: that is no failed test."""
    missing = _NOT_FOUND.search(plain(result.output)[-_TAIL:]) if result.exit_code else None
    return runners.lacking(missing[1]) if missing else ""


def _run_pytest(sandbox: Sandbox, command: TestCommand, timeout_s: float, only: Sequence[str]) -> TestReport:
    line = command.command
    if only and is_plain_pytest(line):
        line = " ".join([line, *(shlex.quote(f"./{path}") for path in only)])
    result, content = _pytest(sandbox, line, timeout_s, ())
    conftest = _CONFTEST.search(plain(result.output)) if result.exit_code == _USAGE_ERROR and content is None else None
    if conftest:
        note = f"{conftest[1]} cannot be imported, so no test could be run."
        return replace(_report(command, result, {conftest[1]: "error"}, note), not_collected=True)
    if result.exit_code == _USAGE_ERROR and content is None and not result.timed_out:
        # Often the repository's own `addopts` name a plugin that is not here (coverage, xdist).
        retried, found = _pytest(sandbox, line, timeout_s, ("-o", "addopts="))
        if retried.exit_code != _USAGE_ERROR:
            result, content = retried, found
    if content is None:
        note = "The tests ran out of time." if result.timed_out else "pytest left no results."
        return _report(command, result, {}, note)
    try:
        results = junit.parse(content)
    except junit.JunitError as error:
        return _report(command, result, {}, f"pytest's results cannot be used: {error}.")
    note = _pytest_note(result, results)
    results_at_top = rootdir.from_the_top(sandbox, command.command, plain(result.output), results)
    return _report(command, result, _of_files(results_at_top, only), note)


def _pytest(sandbox: Sandbox, line: str, timeout_s: float, extra: Sequence[str]) -> tuple[CommandResult, bytes | None]:
    path = f"/tmp/acrouter-{secrets.token_hex(16)}.xml"  # noqa: S108  (inside the sandbox)
    options = [
        "-p no:cacheprovider --color=no --maxfail=0 --continue-on-collection-errors",
        f"--junitxml={path} -o junit_family=xunit1 -o junit_logging=no",
        *(shlex.quote(word) for word in extra),
    ]
    result = sandbox.execute(_with_environment(line, {"PYTEST_ADDOPTS": " ".join(options)}), timeout_s=timeout_s)
    content = sandbox.read_file(path, limit=_MAX_JUNIT)
    return result, content


def _with_environment(line: str, extra: Mapping[str, str]) -> str:
    exports = " ".join(f"{name}={shlex.quote(value)}" for name, value in (_ENVIRONMENT | dict(extra)).items())
    return f"export {exports}\n{line}"


def _pytest_note(result: CommandResult, results: Mapping[str, TestStatus]) -> str:
    bad = sum(status in ("failed", "error") for status in results.values())
    good = sum(status == "passed" for status in results.values())
    if result.timed_out:
        return "The tests ran out of time."
    if result.exit_code not in (0, 1, _NO_TESTS):  # interrupted, or fell over
        return f"pytest did not come to its end (exit code {result.exit_code})."
    if (result.exit_code == 0) != (bad == 0) and result.exit_code != _NO_TESTS:
        return f"The exit code {result.exit_code} and {bad} failed tests in the results do not agree."
    summaries = _SUMMARY.findall(plain(result.output))
    if not summaries:  # `-qq`, or a reporter of the repository's own
        return ""
    counts = {word.rstrip("s"): int(number) for number, word in re.findall(r"(\d+) ([a-z]+)", summaries[-1])}
    said_bad = counts.get("failed", 0) + counts.get("error", 0)
    said_good = counts.get("passed", 0) + counts.get("xpassed", 0)
    skipped = sum(status == "skipped" for status in results.values())
    # A test that passes and then fails in its teardown counts twice in the summary and once here. One of which a part
    # is skipped (unittest's subTest, from pytest 9 on) passes there and is skipped here.
    if (said_bad == 0) != (bad == 0) or not good <= said_good <= good + bad + skipped:
        return f"pytest's summary ({summaries[-1]}) and its results do not agree."
    return ""


def _unittest_note(result: CommandResult, results: Mapping[str, TestStatus], ran: int | None) -> str:
    if result.timed_out:
        return "The tests ran out of time."
    if ran is None:
        return "unittest did not come to its end."
    bad = any(status in ("failed", "error") for status in results.values())
    if result.exit_code == 0 and bad:
        return f"The exit code {result.exit_code} and the results do not agree."
    if len(results) != ran:
        return f"unittest says that it ran {ran} tests; {len(results)} can be read."
    return ""


def _of_files(results: Mapping[str, TestStatus], only: Sequence[str]) -> dict[str, TestStatus]:
    if not only:
        return dict(results)
    belongs = belongs_to(only)
    # A folder that cannot be collected says so for all that are in it.
    folders = {str(folder) for path in only for folder in PurePosixPath(path).parents}
    return {test: status for test, status in results.items() if belongs(test) or test in folders}


def _report(command: TestCommand, result: CommandResult, results: Mapping[str, TestStatus], note: str) -> TestReport:
    if len(results) > MAX_RESULTS:
        results, note = {}, TOO_MANY
    return TestReport(
        command=command.command,
        results=dict(results),
        exit_code=result.exit_code,
        timed_out=result.timed_out,
        duration_s=result.duration_s,
        output_tail=plain(result.output)[-_TAIL:],
        note=note,
    )
