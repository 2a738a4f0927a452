"""Which files are tests, by their names."""

import re

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


def is_test_module(path: str) -> bool:
    """Return whether a file holds tests itself, and not what tests use (conftest.py, helpers, data)."""
    return _MODULE.fullmatch(path.rsplit("/", 1)[-1]) is not None


def is_test_path(path: str) -> bool:
    """Return whether a file is a test, or of the tests (fixtures, snapshots, their configuration)."""
    *folders, name = path.split("/")
    return any(folder.lower() in _FOLDERS for folder in folders) or _NAMES.fullmatch(name) is not None
