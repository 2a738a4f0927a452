"""Reads TAP, as `node --test` writes it (https://nodejs.org/api/test.html#test-reporters), to results by test id.

Children stand before their parent, indented by four. Names are joined by ` > `; a test that holds others counts by
them, and by itself only where it fails though they do not (a hook).
"""

import re
from collections.abc import Mapping

from sandbox.results import TestStatus
from sandbox.types import WORKSPACE

_RESULT = re.compile(r"( *)(not )?ok \d+(?: - (.*))?")
_DIRECTIVE = re.compile(r"(?<!\\)#\s*(?:SKIP|TODO)\b.*$", re.IGNORECASE)
_COUNT = re.compile(r"^# (tests|pass|fail|cancelled|skipped|todo) (\d{1,9})$", re.MULTILINE)
_RANK: Mapping[TestStatus, int] = {"skipped": 0, "passed": 1, "failed": 2, "error": 3}


def parse(output: str) -> tuple[dict[str, TestStatus], dict[str, int]]:
    """Return each test's status by its id, and the runner's own counts at the end (empty: it did not come there)."""
    waiting: dict[int, list[tuple[str, TestStatus]]] = {}
    block = ""  # the indented end mark of a YAML block, whose text may look like a result
    for line in output.splitlines():
        if block:
            block = "" if line == block else block
            continue
        if line.strip() == "---" and waiting:
            block = line.replace("---", "...")
            continue
        if match := _RESULT.fullmatch(line):
            depth = len(match[1]) // 4
            text = match[3] or "(no name)"
            name = _DIRECTIVE.sub("", text).strip().replace("\\#", "#").replace("\\\\", "\\")
            status: TestStatus = "failed" if match[2] else "passed"
            if _DIRECTIVE.search(text):
                status = "skipped"
            waiting.setdefault(depth, []).extend(
                _family(name.removeprefix(f"{WORKSPACE}/"), status, waiting.pop(depth + 1, []))
            )
    results: dict[str, TestStatus] = {}
    for test, status in waiting.get(0, []):
        if test not in results or _RANK[status] > _RANK[results[test]]:
            results[test] = status
    return results, {word: int(number) for word, number in _COUNT.findall(output[-2000:])}


def _family(name: str, status: TestStatus, children: list[tuple[str, TestStatus]]) -> list[tuple[str, TestStatus]]:
    if not children:
        return [(name, status)]
    found = [(f"{name} > {child}", child_status) for child, child_status in children]
    if status == "failed" and all(child_status != "failed" for _, child_status in children):
        found.append((name, status))
    return found
