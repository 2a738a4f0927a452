"""Where a runner's names of tests begin: with Python's two not always at the top of the tree, as a patch's paths do.

pytest names files from its own root, the folder of its configuration, which in a repository of several projects is the
project's (`cd backend && pytest`, `pytest backend`); unittest names modules from where it discovers (`discover -s
tests`). https://docs.pytest.org/en/stable/reference/customize.html#rootdir
"""

import re
from collections.abc import Mapping, Sequence

from sandbox.results import TestStatus
from sandbox.types import WORKSPACE, Sandbox

_TOLD = re.compile(rf"^rootdir: {WORKSPACE}(?:/([^,\r\n]*))?(?=[,\r\n]|$)", re.MULTILINE)
_WORD = re.compile(r"[\w.+/-]+")
_ASKED_FOR = 20


def from_the_top(
    sandbox: Sandbox, line: str, output: str, results: Mapping[str, TestStatus]
) -> Mapping[str, TestStatus]:
    """Return results with ids that begin at the top of the tree.

    pytest tells its root; where it is quiet, and of unittest, it is the deepest folder that the command line names and
    that has the files.
    """
    told = _TOLD.search(output)
    folders = [told[1] or ""] if told else folders_in(line)
    places = sorted({_files_of(test) for test in results})[:_ASKED_FOR]
    for folder in folders:
        if folder and all(any(_is_there(sandbox, f"{folder}/{file}") for file in files) for files in places):
            return {
                f"{folder}/{test}" if _names_a_file(test) else _dotted(folder, test): results[test] for test in results
            }
    return results


def _names_a_file(test: str) -> bool:
    return "::" in test or "/" in test or test.endswith(".py")


def _dotted(folder: str, test: str) -> str:
    return f"{folder.replace('/', '.')}.{test}"


def _files_of(test: str) -> tuple[str, ...]:
    """Return the files of which a test may be; unittest's `a.b.Case.test_c` is of `a.py` or `a/b.py`."""
    if _names_a_file(test):
        return (test.split("::", 1)[0],)
    parts = test.split(".")[:-2]
    return tuple("/".join(parts[: count + 1]) + ".py" for count in range(len(parts)))


def _is_there(sandbox: Sandbox, path: str) -> bool:
    return sandbox.read_file(path, limit=1) is not None


def folders_in(line: str) -> Sequence[str]:
    """Return the folders of the tree that a command line may name (`cd backend && ...`), the deepest first."""
    found = set()
    for word in _WORD.findall(line):
        parts = [part for part in word.split("/") if part not in ("", ".")]
        if not word.startswith(("/", "-")) and ".." not in parts:
            found |= {"/".join(parts[: count + 1]) for count in range(len(parts))}
    return sorted(found, key=lambda folder: (-folder.count("/"), folder))
