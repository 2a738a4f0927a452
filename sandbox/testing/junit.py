"""Reads junit XML to results by test id: pytest's (`junit_family=xunit1`, which names each test's file), and that of
Java's builds, which names classes.

The file is written by a process that runs strangers' code, so it may be anything.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from xml.parsers import expat

from sandbox.results import TestStatus

_RANK: dict[TestStatus, int] = {"skipped": 0, "passed": 1, "failed": 2, "error": 3}
_SAYS: dict[str, TestStatus] = {"skipped": "skipped", "failure": "failed", "error": "error"}
_CHUNK = 1 << 20
_LONGEST_TAG = 8 << 20
"""Bytes; a failure's message stands in one."""
_DEEPEST = 100


class JunitError(ValueError):
    """The file is torn, or is not what a test runner writes."""


def parse(content: bytes) -> dict[str, TestStatus]:
    """Return each test's status by its node id. A test that is named twice keeps its worst.

    Raises:
        JunitError: it cannot be read.
    """
    try:
        content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise JunitError("the results are not UTF-8") from error
    reading = _Reading()
    # Else the file itself names the codec, which may be any of Python's.
    parser = expat.ParserCreate("utf-8")
    parser.StartDoctypeDeclHandler = _refuse_document_type
    parser.StartElementHandler = reading.begin
    parser.EndElementHandler = reading.end
    try:
        for start in range(0, len(content), _CHUNK):
            parser.Parse(content[start : start + _CHUNK], False)
            if start - parser.CurrentByteIndex > _LONGEST_TAG:
                raise JunitError("the results hold a tag that is too long")
        parser.Parse(b"", True)
    except expat.ExpatError as error:
        raise JunitError(f"the results are torn ({error})") from error
    return reading.results


def keep_worst(results: dict[str, TestStatus], more: Mapping[str, TestStatus]) -> None:
    """Add results to others; a test that is in both keeps its worst."""
    for test, status in more.items():
        known = results.get(test)
        if known is None or _RANK[status] > _RANK[known]:
            results[test] = status


def _refuse_document_type(*_: object) -> None:
    """No runner writes one; its entities could grow without end. In a test's output it is text, and harmless."""
    raise JunitError("the results hold a document type")


@dataclass
class _Case:
    """A test whose element is not closed yet."""

    depth: int
    attributes: Mapping[str, str]
    status: TestStatus = "passed"


@dataclass
class _Reading:
    """What the elements so far say. Nothing else of them is kept: a tree of them takes fifty times the file."""

    results: dict[str, TestStatus] = field(default_factory=dict)
    _depth: int = 0
    _open: list[_Case] = field(default_factory=list)

    def begin(self, name: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise JunitError("the results are nested too deeply")
        if name == "testcase":
            self._open.append(_Case(self._depth, attributes))
        elif name in _SAYS and self._open and self._open[-1].depth == self._depth - 1:
            case, said = self._open[-1], _SAYS[name]
            if case.status == "passed" or _RANK[said] > _RANK[case.status]:
                case.status = said

    def end(self, name: str) -> None:
        self._depth -= 1
        if name != "testcase":
            return
        case = self._open.pop()
        if node := _node_id(case.attributes):  # else the test during which pytest was interrupted: it has no result
            keep_worst(self.results, {node: case.status})


def _node_id(case: Mapping[str, str]) -> str:
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
