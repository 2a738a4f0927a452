"""Reads the output of `python -m unittest -v` to results by test id."""

import re

from sandbox.results import TestStatus

_START = re.compile(r"^([\w.]+) \(([\w.<>]+)\)", re.MULTILINE)
_END = re.compile(r"^(?:={70}|-{70})$", re.MULTILINE)
_WORD = re.compile(r"(?:^|\.\.\. ?)(ok|FAIL|ERROR|skipped\b.*|expected failure|unexpected success)\s*$", re.MULTILINE)
_STATUS: dict[str, TestStatus] = {
    "ok": "passed",
    "FAIL": "failed",
    "ERROR": "error",
    "expected failure": "skipped",
    "unexpected success": "failed",
}
_NOT_IMPORTED = "unittest.loader._FailedTest"
_RAN = re.compile(r"^Ran (\d{1,9}) tests? in ", re.MULTILINE)


def parse(output: str) -> tuple[dict[str, TestStatus], int | None]:
    """Return each test's status by its dotted id, and how many tests the runner says it ran (None: it did not end)."""
    ran = _RAN.findall(output)
    end = _END.search(output)
    body = output[: end.start()] if end else output
    starts = list(_START.finditer(body))
    ends = [following.start() for following in starts[1:]] + [len(body)]
    results: dict[str, TestStatus] = {}
    for start, ends_at in zip(starts, ends, strict=False):  # without a start there is one end still
        words = _WORD.findall(body[start.end() : ends_at])
        if words:
            name, where = start[1], start[2]
            results[_id(name, where)] = _STATUS.get(words[-1], "skipped")
    return results, int(ran[-1]) if ran else None


def _id(name: str, where: str) -> str:
    """A module that cannot be imported goes by its file, as pytest's do."""
    if where.startswith(_NOT_IMPORTED):
        return f"{name.replace('.', '/')}.py"
    return where if where.endswith(f".{name}") else f"{where}.{name}"
