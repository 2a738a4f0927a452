"""Test runners besides pytest and unittest: what each needs, how its line is made, and how its results are read.

Like pytest's, these results are written by a process that runs the code under test. They are believed where they agree
with the exit code and the runner's own counts; else the reading carries a note.
"""

import re
import secrets
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sandbox.results import TestStatus
from sandbox.testing import cargo_output, go_json, jest_json, jvm_build, jvm_reports, tap
from sandbox.testing.copied import copying, copying_stdout, whole
from sandbox.types import CommandResult, Sandbox
from templates.escape import plain

_MAX_RESULTS = 30_000_000


@dataclass(frozen=True)
class Reading:
    """What a run's results say. `note`: why they are not to be believed, or are missing."""

    results: Mapping[str, TestStatus]
    note: str = ""
    exit_code_tells: bool = True
    """False: the build is told to end well whatever its tests do, and its own counts agree with the results."""


@dataclass(frozen=True)
class Runner:
    """How one runner is used."""

    programs: tuple[str, ...]
    """Needed in the sandbox, whatever the command."""
    read: Callable[[Sandbox, CommandResult, str], Reading]
    """Sandbox, the run, and the path of the results file."""
    line: Callable[[str, str], str] = lambda command, _: command
    """Command and the path of a results file -> what is run."""
    environment: Mapping[str, str] = field(default_factory=dict)
    called: tuple[str, ...] = ()
    """Needed where the command calls them: it may call a file of the repository (`./gradlew`) in their place."""
    past_failures: str = ""
    """The option that has it end well whatever the tests do, where it has one."""


def run(
    sandbox: Sandbox, name: str, command: str, execute: Callable[[str, Mapping[str, str]], CommandResult]
) -> tuple[CommandResult, Reading]:
    """Run the tests and read their results; `execute` takes the line and its environment."""
    runner = RUNNERS[name]
    if missing := _missing(sandbox, runner, command):
        result = CommandResult(f"{missing}: not found", 127, False, 0.0)
        return result, Reading({}, lacking(missing))
    path = f"/tmp/acrouter-{secrets.token_hex(16)}"  # noqa: S108  (inside the sandbox)
    result = execute(runner.line(command, path), runner.environment)
    reading = runner.read(sandbox, result, path)
    tells = reading.exit_code_tells and runner.past_failures not in command.split()
    return result, Reading(reading.results, reading.note or _disagreement(result, reading, exit_code_tells=tells))


def lacking(program: str) -> str:
    """Return what is said where the sandbox has not got a program."""
    return (
        f"The sandbox has no `{program}`, which the repository's tests need: name its Debian package in "
        "ACROUTER_SANDBOX_PACKAGES, or use an image that has it (ACROUTER_SANDBOX_IMAGE)."
    )


def _missing(sandbox: Sandbox, runner: Runner, command: str) -> str:
    called = [program for program in runner.called if program == command.split(maxsplit=1)[0]]
    for program in (*runner.programs, *called):
        if sandbox.execute(f"command -v {shlex.quote(program)}", timeout_s=10).exit_code:
            return program
    return ""


def _disagreement(result: CommandResult, reading: Reading, *, exit_code_tells: bool) -> str:
    if result.timed_out:
        return "The tests ran out of time."
    bad = sum(status in ("failed", "error") for status in reading.results.values())
    if result.exit_code == 0 and bad and exit_code_tells:
        return f"The exit code 0 and {bad} failed tests in the results do not agree."
    if result.exit_code and reading.results and not bad:
        return f"No test failed, yet the exit code is {result.exit_code}."
    return ""


def _read_tap(sandbox: Sandbox, result: CommandResult, path: str) -> Reading:
    result = whole(sandbox, result, path)
    results, counts = tap.parse(plain(result.output))
    if "tests" not in counts or "fail" not in counts:
        return Reading(results, "node did not come to its end.")
    bad = sum(status == "failed" for status in results.values())
    if not result.truncated and (counts["fail"] + counts.get("cancelled", 0) == 0) != (bad == 0):
        return Reading(results, f"node counts {counts['fail']} failed tests; {bad} can be read.")
    return Reading(results, "Some of the output is missing." if result.truncated else "")


def _read_jest(sandbox: Sandbox, _: CommandResult, path: str) -> Reading:
    content = sandbox.read_file(path, limit=_MAX_RESULTS)
    if content is None:
        return Reading({}, "The test runner left no results.")
    try:
        return Reading(jest_json.parse(content))
    except jest_json.JestError as error:
        return Reading({}, f"The test runner's results cannot be used: {error}.")


def _read_go(sandbox: Sandbox, result: CommandResult, path: str) -> Reading:
    result = whole(sandbox, result, path)
    return Reading(go_json.parse(result.output), "Some of the output is missing." if result.truncated else "")


def _read_cargo(sandbox: Sandbox, result: CommandResult, path: str) -> Reading:
    result = whole(sandbox, result, path)
    results, counted = cargo_output.parse(plain(result.output))
    if not results and result.exit_code:
        return Reading({}, "The tests do not compile, or cargo cannot find what they depend on.")
    if len(results) != counted:
        return Reading(results, f"cargo says that it ran {counted} tests; {len(results)} can be read.")
    return Reading(results)


def _read_build(build: str) -> Callable[[Sandbox, CommandResult, str], Reading]:
    def read(sandbox: Sandbox, result: CommandResult, mark: str) -> Reading:
        results, note = jvm_reports.collect(sandbox, build, mark, cut_short=result.timed_out)
        return Reading(results, note) if note else _of_build(build, result, results)

    return read


def _of_build(build: str, result: CommandResult, results: dict[str, TestStatus]) -> Reading:
    if result.timed_out:
        return Reading(results)
    output = plain(result.output)
    if result.exit_code:
        errors = jvm_build.not_compiled(output)
        note = jvm_build.unfinished(build, output, files_are_named=bool(errors))
        return Reading(results | errors, note or ("" if results or errors else "The build left no test results."))
    if not results:
        return Reading({}, "The build left no test results.")
    counted = jvm_build.counts_failures(output) if build == "maven" else None
    bad = any(status in ("failed", "error") for status in results.values())
    if counted is None or (result.truncated and not counted):
        return Reading(results)
    if counted != bad:
        return Reading(results, "Maven's counts and its results do not agree.")
    return Reading(results, exit_code_tells=False)


def _after_a_mark(command: str, path: str) -> str:
    return f"touch {path}\n{command}"


def _with_json(command: str, path: str) -> str:
    return f"{command} --json --outputFile={path}"


def _with_vitest_json(command: str, path: str) -> str:
    return f"{command} --reporter=json --outputFile={path}"


def _with_go_json(command: str, path: str) -> str:
    line = command if "-json" in command else re.sub(r"\bgo test\b", "go test -json", command, count=1)
    return copying_stdout(line, path)


RUNNERS: Mapping[str, Runner] = {
    "node": Runner(("node",), _read_tap, copying_stdout, environment={"NODE_OPTIONS": "--test-reporter=tap"}),
    "jest": Runner(("node", "npx"), _read_jest, _with_json, {"CI": "true"}),
    "vitest": Runner(("node", "npx"), _read_jest, _with_vitest_json, {"CI": "true"}),
    "go": Runner(("go",), _read_go, _with_go_json, {"GOPROXY": "off", "GOTOOLCHAIN": "local"}),
    "cargo": Runner(
        ("cargo",), _read_cargo, copying, environment={"CARGO_NET_OFFLINE": "true", "CARGO_TERM_COLOR": "never"}
    ),
    "maven": Runner(
        ("java",), _read_build("maven"), _after_a_mark, called=("mvn",), past_failures=jvm_build.PAST_FAILURES
    ),
    "gradle": Runner(("java",), _read_build("gradle"), _after_a_mark, called=("gradle",)),
}
