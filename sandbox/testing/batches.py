"""Runs a suite that is too large for its time limit in parts, the tests near the change first."""

import time
from collections.abc import Collection, Sequence
from dataclasses import replace

from sandbox.results import TestCommand, TestReport, TestStatus
from sandbox.testing.run import run_tests
from sandbox.types import Sandbox

_FILES = 20
"""Of one part, so that little is lost with the one during which the time is up."""


def split(near: Sequence[str], others: Sequence[str]) -> list[Sequence[str]]:
    """Return the parts in their order."""
    return [files[start : start + _FILES] for files in (near, others) for start in range(0, len(files), _FILES)]


def run_parts(
    sandbox: Sandbox, command: TestCommand, parts: Sequence[Sequence[str]], *, timeout_s: float
) -> TestReport:
    """Run part after part until `timeout_s` are over, and return what came of those that ended; `files` says which.

    Raises:
        SandboxError: the sandbox is gone.
    """
    started = time.monotonic()
    ended: list[TestReport] = []
    ran: set[str] = set()
    for part in parts:
        left = timeout_s - (time.monotonic() - started)
        if left <= 0:
            break
        report = run_tests(sandbox, command, timeout_s=left, only=part)
        if report.timed_out:
            break
        ended.append(report)
        ran.update(part)
    return replace(_together(command, ended, time.monotonic() - started), files=frozenset(ran))


def comparable(before: TestReport, after: TestReport, new: Collection[str]) -> tuple[TestReport, TestReport]:
    """Return two runs in parts with the results of the files that both came to, and those of `new` files."""
    both = (before.files or frozenset()) & (after.files or frozenset())
    return _of_files(before, both), _of_files(after, both | (set(new) & (after.files or frozenset())))


def _of_files(report: TestReport, files: Collection[str]) -> TestReport:
    results = {test: status for test, status in report.results.items() if test.split("::", 1)[0] in files}
    return replace(report, results=results, files=frozenset(files))


def _together(command: TestCommand, ended: Sequence[TestReport], duration_s: float) -> TestReport:
    if not ended:
        note = "Not even the tests nearest to the change ended in time."
        return TestReport(command.command, {}, -1, True, duration_s, "", note)
    results: dict[str, TestStatus] = {}
    for report in ended:
        results |= report.results
    return TestReport(
        command=command.command,
        results=results,
        exit_code=max(report.exit_code for report in ended),
        timed_out=False,
        duration_s=duration_s,
        output_tail=ended[0].output_tail,
        note=next((report.note for report in ended if report.note), ""),
    )
