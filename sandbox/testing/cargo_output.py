"""Reads the words of `cargo test` (libtest's and rustdoc's) to results by test id."""

import re
from collections.abc import Mapping

from sandbox.results import TestStatus

_TARGET = re.compile(r"^ +(?:Running (?:unittests )?(\S+)(?: \(.*\))?|(Doc-tests) (\S+))$")
_TEST = re.compile(r"^test (.+?)(?: - should panic)? \.\.\. (ok|FAILED|ignored)(?:, .*)?$")
_SUMMARY = re.compile(r"^test result: \w+\. (\d{1,9}) passed; (\d{1,9}) failed; (\d{1,9}) ignored;", re.MULTILINE)
_STATUS: Mapping[str, TestStatus] = {"ok": "passed", "FAILED": "failed", "ignored": "skipped"}


def parse(output: str) -> tuple[dict[str, TestStatus], int]:
    """Return each test's status by `TARGET::TEST`, and how many the summaries say that there were."""
    results: dict[str, TestStatus] = {}
    target = "tests"
    for line in output.splitlines():
        if found := _TARGET.match(line):
            target = found[1] or f"doc {found[3]}"
        elif test := _TEST.match(line):
            key = f"{target}::{test[1]}"
            if results.get(key) != "failed":
                results[key] = _STATUS[test[2]]
    return results, sum(int(number) for counts in _SUMMARY.findall(output) for number in counts)
