"""Reads `go test -json` (https://pkg.go.dev/cmd/test2json) to results by test id."""

import json
from collections.abc import Mapping

from sandbox.results import TestStatus

_STATUS: Mapping[str, TestStatus] = {"pass": "passed", "fail": "failed", "skip": "skipped"}


def parse(output: str) -> dict[str, TestStatus]:
    """Return each test's status by `PACKAGE::TEST`; a package that fails with no failed test (it does not build, or
    ended early) is an error by its own name."""
    results: dict[str, TestStatus] = {}
    packages: dict[str, str] = {}
    failed_packages = []
    for line in output.splitlines():
        if not line.startswith("{"):
            continue
        try:
            event = json.loads(line)
            action, package, test = event["Action"], str(event.get("Package", "")), event.get("Test")
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            continue
        if action not in _STATUS or not package:
            continue
        if test:
            results[f"{package}::{test}"] = _STATUS[action]
            packages[f"{package}::{test}"] = package
        elif action == "fail":
            failed_packages.append(package)
    explained = {package for test, package in packages.items() if results[test] == "failed"}
    return results | {package: "error" for package in failed_packages if package not in explained}
