"""What the repository's own linters say of a patch: a new finding lowers the score a little, and breaks nothing."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

from sandbox.errors import SandboxError
from sandbox.results import Signal, VerificationResult
from sandbox.types import CommandResult, Sandbox

WEIGHT = 0.04
"""As much as the other signals of form: see `sandbox.signal_weights`."""
_CANNOT_RUN = (126, 127)
"""What a shell says of a command that is not there, or cannot be run."""
_TOLD = 3
_LINE_CHARACTERS = 200
_FLOOR = {"verified": 0.7}
# Colours and other commands for a terminal (ECMA-48).
_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")


Fresh = Callable[[], AbstractContextManager[Sandbox]]
"""Gives a fresh sandbox with a tree in it."""


@dataclass(frozen=True)
class Finding:
    """What one command says with the patch, against what it says without."""

    command: str
    new: Sequence[str] = ()
    """Lines of output that are new."""
    could_not_run: str = ""
    """Why there is no answer."""


def lint(commands: Sequence[str], without: Fresh, with_patch: Fresh, *, timeout_s: float) -> Sequence[Finding]:
    """Run each command on the tree with the patch, and where it complains on the tree without it as well."""
    after = _run(commands, with_patch, timeout_s)
    complaining = [command for command in commands if after[command].exit_code]
    before = _run(complaining, without, timeout_s) if complaining else {}
    return [_compared(command, before.get(command), after[command]) for command in commands]


def with_findings(result: VerificationResult, findings: Sequence[Finding]) -> VerificationResult:
    """Return a result with the signal `lint`. It only lowers the score, not below what the verdict stands for."""
    ran = [finding for finding in findings if not finding.could_not_run]
    value = None if not ran else 0.0 if any(finding.new for finding in ran) else 1.0
    signal = Signal("lint", value, WEIGHT, " ".join(_sentence(finding) for finding in findings))
    score = result.score
    if value is not None:
        mixed = (1 - WEIGHT) * score + WEIGHT * value
        score = round(max(min(score, mixed), _FLOOR.get(result.verdict, 0.0)), 4)
    return replace(result, score=score, signals=[*result.signals, signal])


def _run(commands: Sequence[str], tree: Fresh, timeout_s: float) -> dict[str, CommandResult]:
    results = {}
    try:
        with tree() as sandbox:
            for command in commands:
                results[command] = sandbox.execute(command, timeout_s=timeout_s)
    except SandboxError as error:  # a command took its sandbox down
        gone = CommandResult(str(error), 127, False, 0.0)
        results |= {command: gone for command in commands if command not in results}
    return results


def _compared(command: str, before: CommandResult | None, after: CommandResult) -> Finding:
    for result in (after, before):
        if result is not None and (result.timed_out or result.exit_code in _CANNOT_RUN):
            said = "it did not end in time" if result.timed_out else _last_line(result.output)
            return Finding(command, could_not_run=said or "it is not there")
    if after.exit_code == 0:
        return Finding(command)
    old = Counter(_plain(line) for line in _lines(before.output)) if before is not None else Counter[str]()
    new = []
    for line in _lines(after.output):
        if old[_plain(line)] > 0:
            old[_plain(line)] -= 1
        else:
            new.append(line)
    if before is not None and before.exit_code == 0 and not new:
        new = [f"it ends with {after.exit_code}"]
    return Finding(command, tuple(new))


def _sentence(finding: Finding) -> str:
    if finding.could_not_run:
        return f"`{finding.command}` could not be run: {finding.could_not_run}."
    if not finding.new:
        return f"`{finding.command}` says nothing new."
    more = len(finding.new) - _TOLD
    told = " | ".join(finding.new[:_TOLD]) + (f" | and {more} more lines" if more > 0 else "")
    return f"`{finding.command}` says with the patch: {told}."


def _lines(output: str) -> list[str]:
    lines = (_ESCAPES.sub("", line).strip()[:_LINE_CHARACTERS] for line in output.splitlines())
    return [line for line in lines if line]


def _last_line(output: str) -> str:
    lines = _lines(output)
    return lines[-1] if lines else ""


def _plain(line: str) -> str:
    """A finding without its numbers: the patch may have moved it, and totals change with any."""
    return re.sub(r"\d+", "#", line)
