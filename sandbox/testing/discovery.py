"""Finds how a repository's tests are run, from its tree alone."""

import json
import re
import shlex
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from sandbox.config_files import read_ini, read_toml
from sandbox.guest_sandbox import VENV
from sandbox.results import RunnerName, TestCommand
from sandbox.testing.jvm_build import PAST_FAILURES, SHELLS

PYTEST = "python3 -m pytest"
UNITTEST = "python3 -m unittest discover -v"

_READ = frozenset({"pyproject.toml", "pytest.ini", ".pytest.ini", "tox.ini", "setup.cfg", "Makefile", "package.json"})
_MAX_FILE = 1_000_000
_NPM_TEST = "npm test"
_NPM_NO_TESTS = "no test specified"
_OWN = ("--json", "--outputFile", "--watch", "--reporter", "--test-reporter")
"""A script with one of these already says where its results go, or never ends."""
_BUILDS: tuple[tuple[str, str, RunnerName], ...] = (
    ("go.mod", "go test -json ./...", "go"),
    ("Cargo.toml", "cargo test --no-fail-fast", "cargo"),
    # A module with a failing test is no reason to leave out those that depend on it.
    ("pom.xml", f"mvn -o -B -fae {PAST_FAILURES} -Dmaven.repo.local={VENV}/m2 test", "maven"),
    *(
        (name, "gradle --offline --no-daemon --continue test", "gradle")
        for name in ("build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts")
    ),
)
_STARTS: Sequence[tuple[tuple[str, ...], RunnerName]] = (
    (("node", "--test"), "node"),
    (("go", "test"), "go"),
    (("cargo", "test"), "cargo"),
    (("mvn",), "maven"),
    (("mvnw",), "maven"),
    (("gradle",), "gradle"),
    (("gradlew",), "gradle"),
    *(((shell, "mvnw"), "maven") for shell in SHELLS),
    *(((shell, "gradlew"), "gradle") for shell in SHELLS),
)
"""How a configured command begins whose results can be read."""


@dataclass(frozen=True)
class _Tree:
    names: frozenset[str]
    files: Mapping[str, str]
    """Texts of those at the top that tell about tests."""
    executable: frozenset[str]
    """Names of files with an x bit."""


def discover(archive: Path, override: str | None) -> TestCommand | None:
    """Return how to run the tests of the tree in `archive` (a tar), or None where there are none.

    A configured command wins; then pytest (its configuration, or files that it collects), unittest (files that only it
    collects), the runner that package.json's `test` script calls, go.mod, Cargo.toml, pom.xml, a Gradle build, and last
    a Makefile's `test` target, of which only the exit code is known.
    """
    if override and override.strip():
        return TestCommand(override.strip(), _runner_of(override), "the configured command")
    tree = _read(archive)
    if source := _pytest_source(tree):
        return TestCommand(PYTEST, "pytest", source)
    if name := _first(tree, r"(?:.*/)?tests?[^/]*\.py", within=r"(?:.*/)?tests?/.*|[^/]*"):
        return TestCommand(UNITTEST, "unittest", name)
    return _other_language(tree)


def _other_language(tree: _Tree) -> TestCommand | None:
    if script := npm_test_script(tree.files.get("package.json", "")):
        return _javascript(script)
    for name, command, runner in _BUILDS:
        if name in tree.names:
            wrapped = runner == "gradle" and "gradlew" in tree.names
            return TestCommand(_wrapped(tree, command) if wrapped else command, runner, name)
    if re.search(r"^test\s*:(?!=)", tree.files.get("Makefile", ""), re.MULTILINE):
        return TestCommand("make test", "exit_code", "Makefile")
    return None


def _wrapped(tree: _Tree, command: str) -> str:
    """A wrapper that was committed without its x bit cannot be called by itself."""
    program = "./gradlew" if "gradlew" in tree.executable else "bash ./gradlew"
    return f"{program} {command.removeprefix('gradle ')}"


def _javascript(script: str) -> TestCommand:
    """Return the script itself where its results can be read, else npm's run of it."""
    source = f"package.json ({' '.join(script.split())[:80]})"
    program, *options = script.split()
    simple = not re.search(r"[;&|<>`$(){}\n#\\]", script) and not any(word.startswith(_OWN) for word in options)
    if simple and program == "node" and "--test" in options:
        return TestCommand(script, "node", source, _NPM_TEST)
    if simple and program == "jest":
        return TestCommand(f"npx --no-install {script}", "jest", source, _NPM_TEST)
    if simple and program == "vitest":
        rest = [word for word in options if word not in ("run", "watch", "dev")]
        return TestCommand(" ".join(["npx --no-install vitest run", *rest]), "vitest", source, _NPM_TEST)
    return TestCommand(f"{_NPM_TEST} --silent", "exit_code", source)


def is_plain_pytest(command: str) -> bool:
    """Return whether a command is one call of pytest, to which arguments can be appended."""
    return _runner_of(command) == "pytest" and not re.search(r"[;&|<>`$(){}\n#]", command)


def _runner_of(command: str) -> RunnerName:
    try:
        words = [PurePosixPath(word).name for word in shlex.split(command)]
    except ValueError:  # unbalanced quotes: bash will say so
        return "exit_code"
    if "pytest" in words or "py.test" in words:
        return "pytest"
    if "unittest" in words:
        return "unittest"
    simple = not re.search(r"[;&|<>`$(){}\n#]", command)
    for start, runner in _STARTS:
        if simple and tuple(words[: len(start)]) == start:
            return runner
    return "exit_code"


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
    tools = (read_toml(text) or {}).get("tool")
    return frozenset(tools) if isinstance(tools, dict) else frozenset()


def _sections(text: str) -> list[str]:
    parser = read_ini(text)
    return parser.sections() if parser is not None else []


def npm_test_script(text: str) -> str:
    """Return a package.json's `test` script, empty where it has none or the one that `npm init` writes."""
    try:
        package = json.loads(text)
        script = package["scripts"]["test"]
        str(script).encode()  # JSON can spell what no command can hold
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""
    return script.strip() if isinstance(script, str) and _NPM_NO_TESTS not in script else ""


def _first(tree: _Tree, pattern: str, within: str = ".*") -> str:
    matching = (name for name in tree.names if re.fullmatch(pattern, name) and re.fullmatch(within, name))
    return min(matching, key=lambda name: (name.count("/"), name), default="")


def _read(archive: Path) -> _Tree:
    names: set[str] = set()
    executable: set[str] = set()
    files: dict[str, str] = {}
    with tarfile.open(archive, "r:") as tar:
        for member in tar:
            name = member.name.removeprefix("./")
            if not member.isfile():
                continue
            names.add(name)
            if member.mode & 0o111:
                executable.add(name)
            if name in _READ and member.size <= _MAX_FILE and (stream := tar.extractfile(member)):
                files[name] = stream.read().decode("utf-8", "replace")
    return _Tree(frozenset(names), files, frozenset(executable))
