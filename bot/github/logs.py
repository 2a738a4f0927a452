"""Cuts a CI job's log to what a reader needs: the failing step, the errors, the tail."""

import re

from templates.escape import plain

_TIMESTAMP = re.compile(r"^\ufeff?\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z ?")
_ERROR = re.compile(r"^##\[error\]")
_LOOKS_WRONG = re.compile(
    r"\b(?:error|failed|failure|traceback|exception|panic|fatal|assert\w*|segfault)\b|^E  |\bFAILED\b", re.IGNORECASE
)
_AROUND = 3
_GAP = "[…]"


def readable(raw: bytes) -> str:
    """Return a log's text: UTF-8 with replacement, without ANSI sequences, timestamps and overwritten progress."""
    lines = plain(raw.decode("utf-8", "replace")).splitlines()
    return "\n".join(_TIMESTAMP.sub("", line).rstrip() for line in lines)


def failing_part(log: str, limit: int = 12_000) -> str:
    """Return at most about `limit` characters of a readable log.

    Kept first is the step in which GitHub reports the first error, from its end backwards; what is left of the room
    goes to lines elsewhere that look like errors, and to the tail. What is left out shows as `[…]`.
    """
    lines = log.splitlines()
    if len(log) <= limit:
        return log.strip("\n")
    wanted: set[int] = set()
    room = limit
    for candidates in (_failing_step(lines), _errors(lines), range(len(lines) - 1, -1, -1)):
        for index in candidates:
            if index in wanted:
                continue
            # One endless line must not push the others out.
            cost = min(len(lines[index]), 1000) + 1
            if cost > room:
                break
            room -= cost
            wanted.add(index)
        if room < limit // 10:
            break
    return _joined(lines, wanted)


def _failing_step(lines: list[str]) -> list[int]:
    """Indexes of the step that holds the first `##[error]`, its end first; at most what lies in that step."""
    error = next((index for index, line in enumerate(lines) if _ERROR.match(line)), None)
    if error is None:
        return []
    start = max((i for i in range(error) if _starts_step(lines[i])), default=0)
    return list(range(error, start - 1, -1))


def _starts_step(line: str) -> bool:
    return line.startswith(("##[group]Run ", "##[group]Post "))


def _errors(lines: list[str]) -> list[int]:
    """Indexes of lines that look wrong with their surroundings, the last first: summaries stand at the end."""
    found: list[int] = []
    for index in range(len(lines) - 1, -1, -1):
        if _LOOKS_WRONG.search(lines[index]):
            found.extend(range(max(index - _AROUND, 0), min(index + _AROUND + 1, len(lines))))
    return found


def _joined(lines: list[str], wanted: set[int]) -> str:
    parts: list[str] = []
    previous = -1
    for index in sorted(wanted):
        if index != previous + 1:
            parts.append(_GAP)
        line = lines[index]
        parts.append(line if len(line) <= 1000 else f"{line[:1000]}{_GAP}")
        previous = index
    if previous != len(lines) - 1:
        parts.append(_GAP)
    return "\n".join(parts)
