"""How Maven and Gradle are told to run a few tests alone, by the ids that `sandbox.testing.jvm_build` gives them."""

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from sandbox.testing.jvm_build import SHELLS, is_source

_ID = re.compile(r"(?:(?P<module>[\w.][\w./-]*)/)?(?P<of_class>[\w.$]+)(?:::(?P<name>.*))?")


@dataclass(frozen=True)
class _Test:
    module: str
    """Its folder, empty for the build's own."""
    of_class: str
    method: str
    """With a `*` where its name goes on with parameters; empty: the whole class."""


def program(command: str) -> str:
    """Return what a command calls: the repository's own wrapper, or the program of this name."""
    words = command.split()
    return " ".join(map(shlex.quote, words[: 2 if words[0] in SHELLS else 1]))


def maven(command: str, tests: Sequence[str]) -> str | None:
    """Return the line that runs these tests and builds what their modules need, or None where an id names no class."""
    found = [_read(test) for test in tests if not is_source(test)]
    chosen = [f"{test.of_class}#{test.method}" if test.method else test.of_class for test in found if test]
    if not chosen or None in found:
        return None
    modules = sorted({test.module or "." for test in found if test})
    # Without them, modules that have none of these tests would fail.
    others = [f"-pl {','.join(map(shlex.quote, modules))} -am -DfailIfNoTests=false"]
    others += ["-Dsurefire.failIfNoSpecifiedTests=false"]
    places = [] if modules == ["."] else others
    return " ".join([f"{program(command)} test", *places, shlex.quote(f"-Dtest={','.join(dict.fromkeys(chosen))}")])


def gradle(command: str, tests: Sequence[str]) -> str | None:
    """Return the line that runs these tests, each by its module's task, or None where an id names no class."""
    found = [_read(test) for test in tests if not is_source(test)]
    if not found or None in found:
        return None
    words = [program(command)]
    for module in sorted({test.module for test in found if test}):
        words.append(f":{module.replace('/', ':')}:test" if module else ":test")
        names = [f"{t.of_class}.{t.method}" if t.method else t.of_class for t in found if t and t.module == module]
        words += [f"--tests {shlex.quote(name)}" for name in dict.fromkeys(names)]
    return " ".join(words)


def _read(test: str) -> _Test | None:
    found = _ID.fullmatch(test)
    if found is None:
        return None
    name = found["name"] or ""
    method = re.match(r"[\w$]*", name)
    plain = method[0] if method else ""
    return _Test(found["module"] or "", found["of_class"], plain if plain == name or not plain else f"{plain}*")
