"""Reads junit XML to results by test id: pytest's (`junit_family=xunit1`, which names each test's file), and that of
Java's builds, which names classes.

The file is written by a process that runs strangers' code, so it may be anything.
"""

import xml.etree.ElementTree as ET
from collections.abc import Mapping
from xml.parsers import expat

from sandbox.results import TestStatus

_RANK: dict[TestStatus, int] = {"skipped": 0, "passed": 1, "failed": 2, "error": 3}


class JunitError(ValueError):
    """The file is torn, or is not what a test runner writes."""


def parse(content: bytes) -> dict[str, TestStatus]:
    """Return each test's status by its node id. A test that is named twice keeps its worst.

    Raises:
        JunitError: it cannot be read.
    """
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise JunitError("the results are not UTF-8") from error
    try:
        _refuse_document_types(text)
        root = ET.fromstring(text)  # noqa: S314  (no document type, see above)
    except JunitError:
        raise
    except (expat.ExpatError, ET.ParseError, ValueError, LookupError) as error:
        raise JunitError(f"the results are torn ({error})") from error
    results: dict[str, TestStatus] = {}
    for case in root.iter("testcase"):
        if node := _node_id(case):  # else the test during which pytest was interrupted: it has no result
            keep_worst(results, {node: _status(case)})
    return results


def keep_worst(results: dict[str, TestStatus], more: Mapping[str, TestStatus]) -> None:
    """Add results to others; a test that is in both keeps its worst."""
    for test, status in more.items():
        known = results.get(test)
        if known is None or _RANK[status] > _RANK[known]:
            results[test] = status


def _refuse_document_types(text: str) -> None:
    """No runner writes one; its entities could grow without end. In a test's output it is text, and harmless."""

    def refuse(*_: object) -> None:
        raise JunitError("the results hold a document type")

    # As ElementTree reads a text: else the file itself names the codec, which may be any of Python's.
    parser = expat.ParserCreate("utf-8")
    parser.StartDoctypeDeclHandler = refuse
    parser.Parse(text.encode(), True)


def _status(case: ET.Element) -> TestStatus:
    if case.find("error") is not None:
        return "error"
    if case.find("failure") is not None:
        return "failed"
    return "skipped" if case.find("skipped") is not None else "passed"


def _node_id(case: ET.Element) -> str:
    file, name = case.get("file", ""), case.get("name", "")
    classes = case.get("classname", "")
    if not classes:  # a module that could not be collected: its dotted name is all there is
        return f"{name.replace('.', '/')}.py" if name and "/" not in name and not file else file or name
    module = file.removesuffix(".py").replace("/", ".")
    if not file:
        return f"{classes}::{name}"
    if classes == module:
        return f"{file}::{name}"
    if classes.startswith(module + "."):
        return f"{file}::{classes[len(module) + 1 :].replace('.', '::')}::{name}"
    return f"{file}::{classes}::{name}"
