"""Reads pytest's junit XML (`junit_family=xunit1`, which names each test's file) to results by node id.

The file is written by a process that runs strangers' code, so it may be anything.
"""

import xml.etree.ElementTree as ET

from sandbox.results import TestStatus

_RANK: dict[TestStatus, int] = {"skipped": 0, "passed": 1, "failed": 2, "error": 3}


class JunitError(ValueError):
    """The file is torn, or is not what pytest writes."""


def parse(content: bytes) -> dict[str, TestStatus]:
    """Return each test's status by its node id. A test that is named twice keeps its worst.

    Raises:
        JunitError: it cannot be read.
    """
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise JunitError("the results are not UTF-8") from error
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        # pytest writes neither; entities could grow without end.
        raise JunitError("the results hold a document type")
    try:
        root = ET.fromstring(text)  # noqa: S314  (no document type, see above)
    except ET.ParseError as error:
        raise JunitError(f"the results are torn ({error})") from error
    results: dict[str, TestStatus] = {}
    for case in root.iter("testcase"):
        node, status = _node_id(case), _status(case)
        if not node:  # the test during which pytest was interrupted: it has no result
            continue
        known = results.get(node)
        if known is None or _RANK[status] > _RANK[known]:
            results[node] = status
    return results


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
