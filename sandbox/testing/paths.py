"""Which files are tests, by their names."""

import re
import shlex
from collections.abc import Sequence

from sandbox.types import TestCommand

_FOLDERS = frozenset({"test", "tests", "__tests__", "spec", "specs", "__snapshots__", "testdata"})
_NAMES = re.compile(
    r"(?:test_.*|.*_tests?|tests?|conftest)\.py"
    r"|.*[._-](?:test|spec)\.[cm]?[jt]sx?"
    r"|.*_test\.(?:go|rs|rb|c|cc|cpp)"
    r"|.*Tests?\.(?:java|kt|cs)"
    r"|.*\.(?:snap|ambr|golden)|jest\.config\.[cm]?[jt]s(?:on)?|vitest\.config\.[cm]?[jt]s"
    r"|pytest\.ini|\.coveragerc|tox\.ini"
)
_MODULE = re.compile(
    r"(?:test_.*|.*_tests?|tests?\d*|test[a-z].*)\.py|.*[._-](?:test|spec)\.[cm]?[jt]sx?|.*_test\.(?:go|rs|rb|c|cc|cpp)"
    r"|.*Tests?\.(?:java|kt|cs)"
)


_READ_BY = {
    "make": ("Makefile", "makefile", "GNUmakefile"),
    "npm": ("package.json",),
    "pnpm": ("package.json",),
    "yarn": ("package.json",),
    "tox": ("pyproject.toml", "setup.cfg"),
    "nox": ("noxfile.py",),
    "just": ("justfile", "Justfile"),
}
"""Program of a test command -> the files that say what it does."""


def is_test_module(path: str) -> bool:
    """Return whether a file holds tests itself, and not what tests use (conftest.py, helpers, data)."""
    return _MODULE.fullmatch(path.rsplit("/", 1)[-1]) is not None


def is_test_path(path: str) -> bool:
    """Return whether a file is a test, or of the tests (fixtures, snapshots, their configuration)."""
    *folders, name = path.split("/")
    return any(folder.lower() in _FOLDERS for folder in folders) or _NAMES.fullmatch(name) is not None


def how_tests_run(command: TestCommand | None, paths: Sequence[str]) -> frozenset[str]:
    """Return which of `paths` say what a test command does: the files that it names, and those that its program reads.

    The latter only where the exit code is all that is known: results by test id show what such a file hides.
    """
    if command is None:
        return frozenset()
    try:
        words = shlex.split(command.command)
    except ValueError:
        words = command.command.split()
    named = {word.removeprefix("./") for word in words}
    if command.runner == "exit_code":
        named |= {file for program, files in _READ_BY.items() if program in words for file in files}
    return frozenset(path for path in paths if path in named)
