"""Collects the junit XML that a run of Maven or Gradle leaves in its modules."""

import shlex

from sandbox.results import MAX_RESULTS, TOO_MANY, TestStatus
from sandbox.testing import junit, jvm_build
from sandbox.types import Sandbox

MAX_REPORTS = 5_000
MAX_REPORT, MAX_IN_ALL = 30_000_000, 200_000_000
"""Bytes. One file may be linked into each of many modules: to the sandbox they are one."""


def collect(sandbox: Sandbox, build: str, mark: str, *, cut_short: bool) -> tuple[dict[str, TestStatus], str]:
    """Return the results of all modules, and why they cannot be used where that is so: then there are none.

    `mark` is a file that was made before the run. A report that is torn is left out where the run was `cut_short`.
    """
    where = " -o ".join(f"-path {shlex.quote(f'*/{reports}')}" for reports in jvm_build.REPORTS[build])
    # What an earlier run left, or the repository itself, is as old as the mark or older.
    found = sandbox.execute(f"find . -type f -newer {mark} \\( {where} \\)", timeout_s=30)
    modules = {path: jvm_build.module_of(build, path) for path in sorted(found.output.splitlines())}
    reports = {path: module for path, module in modules.items() if module is not None}
    if found.truncated or found.timed_out or len(reports) > MAX_REPORTS:
        return {}, f"The build left more reports than can be read ({MAX_REPORTS:,})."
    results: dict[str, TestStatus] = {}
    left = MAX_IN_ALL
    for path, module in reports.items():
        limit = min(left, MAX_REPORT)
        content = sandbox.read_file(path, limit=limit + 1) or b""
        if len(content) > limit:
            return {}, _too_large(path, limit)
        left -= len(content)
        try:
            junit.keep_worst(results, jvm_build.results(module, content))
        except junit.JunitError as error:
            if not cut_short:  # else it was being written
                return {}, f"The results in {path} cannot be used: {error}."
        if len(results) > MAX_RESULTS:
            return {}, TOO_MANY
    return results, ""


def _too_large(path: str, limit: int) -> str:
    if limit < MAX_REPORT:
        return f"The build's results are too large: more than {MAX_IN_ALL // 1_000_000} MB in all."
    return f"The results in {path} are too large: more than {MAX_REPORT // 1_000_000} MB."
