"""What tox or nox would install for the tests, read from their files; nothing of them is run here."""

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from sandbox.config_files import read_ini, read_toml
from sandbox.setup_tree import Tree

# PEP 508 without URLs, as far as it can stand in quotes: a name, extras, versions, a marker.
_REQUIREMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(?:\[[A-Za-z0-9._,\s-]*\])?(?:\s*[<>=!~(;][^'\n]*)?")
_EXTRAS = re.compile(r"\.\[([A-Za-z0-9._-]+(?:\s*,\s*[A-Za-z0-9._-]+)*)\]")
_FILE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./-]*")
_FACTOR = re.compile(r"[\w.,{}!-]+:\s")


@dataclass(frozen=True)
class Needs:
    """What tests need besides the project itself."""

    requirements: Sequence[str]
    files: Sequence[str]
    """Files of requirements, which are in the tree."""
    extras: Sequence[str]
    """Of the project."""
    source: str


def needs_of_tests(tree: Tree) -> Needs | None:
    """Return what the first of tox and nox that names anything names, or None."""
    for source, read in (("tox.ini", _tox_ini), ("pyproject.toml", _tox_toml), ("noxfile.py", _nox)):
        if source in tree.files and (needs := _needs(list(read(tree.files[source])), source, tree)) is not None:
            return needs
    return None


def _needs(words: list[str], source: str, tree: Tree) -> Needs | None:
    """Sort arguments of `pip install` into what can be used; what was not understood is left out."""
    requirements, files, extras = [], [], []
    for word in words:
        name = re.sub(r"^(?:-r|--requirement)[\s=]*", "", word).strip()
        if (match := _EXTRAS.fullmatch(word)) is not None:
            extras += [extra.strip() for extra in match.group(1).split(",")]
        elif name != word:
            path = PurePosixPath(name.removeprefix("{toxinidir}/")).as_posix()
            if _FILE.fullmatch(path) and path in tree.names:
                files.append(path)
        elif _REQUIREMENT.fullmatch(word):
            requirements.append(word)
    if not (requirements or files or extras):
        return None
    return Needs(tuple(dict.fromkeys(requirements)), tuple(dict.fromkeys(files)), tuple(dict.fromkeys(extras)), source)


def _tox_ini(text: str) -> Iterator[str]:
    """tox.ini's `[testenv]`: `deps` and `extras`, without factors' lines (https://tox.wiki/en/stable/config.html)."""
    parser = read_ini(text)
    if parser is None or not parser.has_section("testenv"):
        return
    for line in parser.get("testenv", "deps", fallback="").splitlines():
        dependency = line.split(" #")[0].strip()
        if dependency and not dependency.startswith("#") and not _FACTOR.match(dependency):
            yield dependency
    for extra in re.split(r"[\s,]+", parser.get("testenv", "extras", fallback="").strip()):
        yield f".[{extra}]"


def _tox_toml(text: str) -> Iterator[str]:
    """tox's own tables in pyproject.toml."""
    try:
        tox = (read_toml(text) or {})["tool"]["tox"]
        if "legacy_tox_ini" in tox:
            yield from _tox_ini(tox["legacy_tox_ini"])
            return
        run = tox["env_run_base"]
        yield from (word for word in run.get("deps", []) if isinstance(word, str))
        yield from (f".[{extra}]" for extra in run.get("extras", []))
    except (KeyError, TypeError, AttributeError):
        return


def _nox(text: str) -> Iterator[str]:
    """The words of `session.install(...)` in nox's sessions for tests."""
    try:
        module = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for function in module.body:
        if not (isinstance(function, ast.FunctionDef) and "test" in function.name and function.decorator_list):
            continue
        for node in ast.walk(function):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "install":
                yield from _joined([a.value for a in node.args if isinstance(a, ast.Constant)])


def _joined(arguments: list[object]) -> Iterator[str]:
    """`-r FILE` and `-e .[x]` as one word."""
    words = iter([word for word in arguments if isinstance(word, str)])
    for word in words:
        if word in ("-r", "--requirement"):
            yield f"-r {next(words, '')}"
        else:
            yield word
