"""Finds how a repository's tests are run, from its tree alone."""

import configparser
import json
import re
import shlex
import tarfile
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal

from sandbox.types import TestCommand

PYTEST = "python3 -m pytest"
UNITTEST = "python3 -m unittest discover -v"

_READ = frozenset({"pyproject.toml", "pytest.ini", ".pytest.ini", "tox.ini", "setup.cfg", "Makefile", "package.json"})
_MAX_FILE = 1_000_000
_NPM_NO_TESTS = "no test specified"


@dataclass(frozen=True)
class _Tree:
    names: frozenset[str]
    files: Mapping[str, str]
    """Texts of those at the top that tell about tests."""


def discover(archive: Path, override: str | None) -> TestCommand | None:
    """Return how to run the tests of the tree in `archive` (a tar), or None where there are none.

    A configured command wins; then pytest (its configuration, or files that it collects), unittest (files that only it
    collects), a Makefile's `test` target, package.json's `test` script.
    """
    if override and override.strip():
        return TestCommand(override.strip(), _runner_of(override), "the configured command")
    tree = _read(archive)
    if source := _pytest_source(tree):
        return TestCommand(PYTEST, "pytest", source)
    if name := _first(tree, r"(?:.*/)?tests?[^/]*\.py", within=r"(?:.*/)?tests?/.*|[^/]*"):
        return TestCommand(UNITTEST, "unittest", name)
    if re.search(r"^test\s*:(?!=)", tree.files.get("Makefile", ""), re.MULTILINE):
        return TestCommand("make test", "exit_code", "Makefile")
    if _npm_script(tree.files.get("package.json", "")):
        return TestCommand("npm test --silent", "exit_code", "package.json")
    return None


def is_plain_pytest(command: str) -> bool:
    """Return whether a command is one call of pytest, to which arguments can be appended."""
    return _runner_of(command) == "pytest" and not re.search(r"[;&|<>`$(){}\n#]", command)


def _runner_of(command: str) -> Literal["pytest", "unittest", "exit_code"]:
    try:
        words = [PurePosixPath(word).name for word in shlex.split(command)]
    except ValueError:  # unbalanced quotes: bash will say so
        return "exit_code"
    if "pytest" in words or "py.test" in words:
        return "pytest"
    return "unittest" if "unittest" in words else "exit_code"


def _pytest_source(tree: _Tree) -> str:
    for name in ("pytest.ini", ".pytest.ini"):
        if name in tree.files:
            return name
    if "pytest" in _toml_tools(tree.files.get("pyproject.toml", "")):
        return "pyproject.toml"
    for name, section in (("tox.ini", "pytest"), ("setup.cfg", "tool:pytest")):
        if section in _sections(tree.files.get(name, "")):
            return name
    return _first(tree, r"(?:.*/)?conftest\.py") or _first(tree, r"(?:.*/)?(?:test_[^/]*|[^/]*_test)\.py")


def _toml_tools(text: str) -> frozenset[str]:
    try:
        tools = tomllib.loads(text).get("tool", {})
    except (tomllib.TOMLDecodeError, RecursionError):
        return frozenset()
    return frozenset(tools) if isinstance(tools, dict) else frozenset()


def _sections(text: str) -> list[str]:
    parser = configparser.RawConfigParser(strict=False)
    try:
        parser.read_string(text)
    except configparser.Error:
        return []
    return parser.sections()


def _npm_script(text: str) -> bool:
    try:
        package = json.loads(text)
        script = package["scripts"]["test"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return False
    return isinstance(script, str) and bool(script.strip()) and _NPM_NO_TESTS not in script


def _first(tree: _Tree, pattern: str, within: str = ".*") -> str:
    matching = (name for name in tree.names if re.fullmatch(pattern, name) and re.fullmatch(within, name))
    return min(matching, key=lambda name: (name.count("/"), name), default="")


def _read(archive: Path) -> _Tree:
    names: set[str] = set()
    files: dict[str, str] = {}
    with tarfile.open(archive, "r:") as tar:
        for member in tar:
            name = member.name.removeprefix("./")
            if not member.isfile():
                continue
            names.add(name)
            if name in _READ and member.size <= _MAX_FILE and (stream := tar.extractfile(member)):
                files[name] = stream.read().decode("utf-8", "replace")
    return _Tree(frozenset(names), files)
