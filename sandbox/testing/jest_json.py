"""Reads what `jest --json` writes, and vitest's `json` reporter after its model, to results by test id.

Format: https://jestjs.io/docs/configuration#testresultsprocessor-string. The file is written by a process that runs
strangers' code, so it may be anything.
"""

import json
from collections.abc import Mapping
from typing import Any

from sandbox.results import TestStatus
from sandbox.types import WORKSPACE

_STATUS: Mapping[str, TestStatus] = {
    "passed": "passed",
    "failed": "failed",
    "pending": "skipped",
    "skipped": "skipped",
    "todo": "skipped",
    "disabled": "skipped",
}

_MOST_PARTS = 4_000_000
"""Objects, lists and commas. 30 MB of results have two million; of `[],[],` ten, each of 60 bytes in memory."""


class JestError(ValueError):
    """The file is torn, or is not what jest writes."""


def parse(content: bytes) -> dict[str, TestStatus]:
    """Return each test's status by `FILE::TITLE > TITLE`. A file that cannot be run is an error by its own name.

    Raises:
        JestError: it cannot be read.
    """
    if sum(map(content.count, (b"{", b"[", b","))) > _MOST_PARTS:
        raise JestError("the results have too many parts")
    try:
        document = json.loads(content)
        files = document["testResults"]
        results: dict[str, TestStatus] = {}
        for file in files:
            name = str(file["name"]).removeprefix(f"{WORKSPACE}/")
            for test in file["assertionResults"]:
                key = f"{name}::{_title(test)}"
                status = _STATUS.get(test["status"], "error")
                results[key] = status if results.get(key) != "failed" else "failed"
            if file.get("status") == "failed" and not any(
                test["status"] == "failed" for test in file["assertionResults"]
            ):
                results[name] = "error"
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise JestError(f"the results cannot be read ({type(error).__name__})") from error
    return results


def _title(test: Mapping[str, Any]) -> str:
    return " > ".join(str(part) for part in (*(test.get("ancestorTitles") or ()), test["title"]) if part)
