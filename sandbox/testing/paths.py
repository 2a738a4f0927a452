"""Which files are tests, by their names."""

import re
import shlex
from collections.abc import Collection, Mapping, Sequence

from sandbox.patch_text import FileChange
from sandbox.results import RunnerName, TestCommand
from sandbox.testing.rootdir import folders_in

_FOLDERS = frozenset({"test", "tests", "__tests__", "spec", "specs", "__snapshots__", "testdata"})
_NAMES = re.compile(
    r"(?:test_.*|.*_tests?|tests?|conftest)\.py"
    r"|.*[._-](?:test|spec)\.[cm]?[jt]sx?"
    r"|.*_test\.(?:go|rs|rb|c|cc|cpp)"
    r"|.*Tests?\.(?:java|kt|cs)"
    r"|.*\.(?:snap|ambr|golden)|jest\.config\.[cm]?[jt]s(?:on)?|vitest\.(?:config|workspace)\.[cm]?[jt]s"
    r"|\.mocharc\.\w+|(?:ava|karma)\.conf(?:ig)?\.[cm]?[jt]s|\.taprc"
    r"|\.?pytest\.(?:ini|toml)|\.coveragerc|tox\.(?:ini|toml)|unittest\.cfg|(?:site|user)customize\.py"
)
_STAND_IN = re.compile(r"_?pytest(?:\.py|/.*)|unittest(?:\.py|/.*)")
"""At the root, where Python finds them before the runner itself."""
_PLUG = re.compile(r"(?:.*/)?[^/]+\.(?:dist|egg)-info/entry_points\.txt")
"""Names pytest's plugins, as that of a package which is installed."""
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
_CONFIGURED_IN: Mapping[RunnerName, tuple[str, ...]] = {
    "pytest": ("pyproject.toml", "setup.cfg"),
    "jest": ("package.json",),
    "vitest": ("package.json", "vite.config.ts", "vite.config.mts", "vite.config.js", "vite.config.mjs"),
    "cargo": ("Cargo.toml", ".cargo/config.toml"),
    "maven": ("pom.xml", "maven.config", "jvm.config"),
    "gradle": ("build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts", "gradle.properties"),
}
"""Files that hold a runner's configuration among other things; Java's builds have them in each module."""
_ABOUT_TESTS = re.compile(r"test|addopts|norecursedirs|plugin|setupFiles|harness|surefire|junit", re.IGNORECASE)


def is_test_module(path: str) -> bool:
    """Return whether a file holds tests itself, and not what tests use (conftest.py, helpers, data)."""
    return _MODULE.fullmatch(path.rsplit("/", 1)[-1]) is not None


def is_test_path(path: str) -> bool:
    """Return whether a file is a test, or of the tests (fixtures, snapshots, their configuration)."""
    *folders, name = path.split("/")
    named = _NAMES.fullmatch(name) is not None or _STAND_IN.fullmatch(path) is not None
    named = named or _PLUG.fullmatch(path) is not None
    return named or any(folder.lower() in _FOLDERS for folder in folders)


def how_tests_run(command: TestCommand | None, changes: Sequence[FileChange]) -> frozenset[str]:
    """Return which changed files say how the tests of a command are run: those that it names, those that its program
    reads where the exit code is all that is known, and a runner's configuration where a changed line is about tests;
    each at the top of the tree or in a folder that the command names.
    """
    if command is None:
        return frozenset()
    try:
        words = shlex.split(command.command)
    except ValueError:
        words = command.command.split()
    named = {part.removeprefix("./") for word in words for part in (word, word.rpartition("=")[2])}
    if command.runner == "exit_code":
        named |= {file for program, files in _READ_BY.items() if program in words for file in files}
    places = ("", *(f"{folder}/" for folder in folders_in(command.command)))
    configured = _CONFIGURED_IN.get(command.runner, ())
    in_any_folder = command.runner in ("maven", "gradle")

    def is_one_of(names: Collection[str], path: str) -> bool:
        return any(path.startswith(place) and path.removeprefix(place) in names for place in places)

    def is_configuration(change: FileChange) -> bool:
        path = change.path.rsplit("/", 1)[-1] if in_any_folder else change.path
        lines = (*change.added, *change.removed)
        return is_one_of(configured, path) and any(_ABOUT_TESTS.search(line) for line in lines)

    return frozenset(change.path for change in changes if is_one_of(named, change.path) or is_configuration(change))
