"""The commands by which a reviewer checks a verdict: the set-up, and the runner's own way to run a few tests alone.

Test ids and file names are a stranger's words: each is one quoted word of a shell line, and one that holds control
characters is left out, so that what is shown is what is run.
"""

import re
import shlex
from collections.abc import Callable, Mapping, Sequence

from sandbox import by_hand_java as java
from sandbox.evidence import ByHand
from sandbox.guest_sandbox import VENV
from sandbox.results import RunnerName, TestCommand
from sandbox.testing.discovery import UNITTEST, is_plain_pytest

_MOST_TESTS, _MOST_CHARS = 20, 1_500
_INSTALLS: Mapping[RunnerName, str] = {
    "node": "npm ci",
    "jest": "npm ci",
    "vitest": "npm ci",
    "go": "go mod download",
    "cargo": "cargo fetch",
}
"""In place of a set-up that is written for the sandbox's own folders."""
_FOR_THE_SANDBOX = (VENV, " --offline ")
"""In a test command that is."""


def by_hand(
    command: TestCommand, setup: Sequence[str], *, proofs: Sequence[str], broken: Sequence[str], own: Sequence[str]
) -> ByHand:
    """Return the lines for a repository's test command; `own` are the patch's test files that are still there."""
    return ByHand(
        setup=_setup(command, setup),
        proof=only(command, proofs) if proofs else "",
        broken=only(command, broken) if broken else "",
        everything=_everything(command),
        own_tests=[path for path in own if _plain(path)],
    )


def only(command: TestCommand, tests: Sequence[str]) -> str:
    """Return the line that runs these tests alone, or all tests where the runner cannot be told which."""
    shown = [test for test in tests if _plain(test)][:_MOST_TESTS]
    choose = _CHOICES.get(command.runner)
    line = choose(command.command, shown) if choose and shown else None
    return line if line is not None and len(line) <= _MOST_CHARS else _everything(command)


def _everything(command: TestCommand) -> str:
    inside = command.runner in ("maven", "gradle") and any(part in command.command for part in _FOR_THE_SANDBOX)
    return f"{java.program(command.command)} test" if inside else command.command


def _setup(command: TestCommand, setup: Sequence[str]) -> list[str]:
    lines = [line for line in setup if VENV not in line and not line.startswith("if command -v ")]
    if len(lines) < len(setup):
        lines += [line for line in [_INSTALLS.get(command.runner, "")] if line]
    if command.runner in ("pytest", "unittest"):
        tools = ["python -m pip install pytest"] if command.runner == "pytest" else []
        if lines or tools:
            return ["python3 -m venv .venv && . .venv/bin/activate", *lines, *tools]
    return lines


def _plain(text: str) -> bool:
    return text.isprintable() and bool(text.strip())


def _pytest(command: str, tests: Sequence[str]) -> str | None:
    if not is_plain_pytest(command) or not all(test.split("::", 1)[0].endswith(".py") for test in tests):
        return None
    # Never an option: a file may be called `-x.py`.
    words = [f"./{test}" if test.startswith("-") else test for test in tests]
    return " ".join([command, *map(shlex.quote, words)])


def _unittest(command: str, tests: Sequence[str]) -> str | None:
    known = command == UNITTEST and all(re.fullmatch(r"[A-Za-z_][\w.]*", test) for test in tests)
    return " ".join(["python3 -m unittest -v", *tests]) if known else None


def _go(command: str, tests: Sequence[str]) -> str | None:
    found = [test.partition("::") for test in tests if "::" in test]
    if "./..." not in command or not found or any(package.startswith("-") for package, _, _ in found):
        return None
    names = sorted({re.escape(name.split("/", 1)[0]) for _, _, name in found})
    packages = sorted({package for package, _, _ in found})
    return " ".join(["go test -run", shlex.quote(f"^({'|'.join(names)})$"), *map(shlex.quote, packages)])


def _cargo(command: str, tests: Sequence[str]) -> str | None:
    found = [test.partition("::") for test in tests]
    if " -- " in command or not all(name and not target.startswith("doc ") for target, _, name in found):
        return None
    return " ".join([command, "-- --exact", *(shlex.quote(name) for _, _, name in found)])


def _jest(command: str, tests: Sequence[str]) -> str | None:
    found = [test.partition("::") for test in tests if "::" in test]
    if not found or any(file.startswith("-") for file, _, _ in found):
        return None
    files = sorted({file for file, _, _ in found})
    titles = "|".join(re.escape(title.replace(" > ", " ")) for _, _, title in found)
    return " ".join([command, *map(shlex.quote, files), "-t", shlex.quote(f"^({titles})$")])


def _node(command: str, tests: Sequence[str]) -> str | None:
    titles = "|".join(re.escape(test.rsplit(" > ", 1)[-1]) for test in tests)
    return re.sub(r"(?<!\S)--test(?!\S)", lambda _: f"--test {shlex.quote(f'--test-name-pattern={titles}')}", command)


_CHOICES: Mapping[RunnerName, Callable[[str, Sequence[str]], str | None]] = {
    "pytest": _pytest,
    "unittest": _unittest,
    "go": _go,
    "cargo": _cargo,
    "jest": _jest,
    "vitest": _jest,
    "node": _node,
    "maven": java.maven,
    "gradle": java.gradle,
}
