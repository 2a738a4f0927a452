"""What the package says of itself to installers and type checkers."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PACKAGES: list[str] = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
WITH_AN_EXTRA = {"safetensors", "tokenizers", "threadpoolctl", "torch"}
"""These come with what an extra names, or are left to the user (torch)."""


def imported() -> Iterator[str]:
    """The top-level modules that the package imports, wherever it does."""
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Import):
                    yield from (alias.name.split(".")[0] for alias in node.names)
                elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                    yield node.module.split(".")[0]


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_what_is_imported_is_asked_for() -> None:
    """A dependency of a dependency may go with its next version."""
    extras = PROJECT["project"]["optional-dependencies"].values()
    asked = [*PROJECT["project"]["dependencies"], *(one for extra in extras for one in extra)]
    declared = {normal(re.split(r"[\[>=<!; ]", one)[0]) for one in asked} | WITH_AN_EXTRA
    distributions = packages_distributions()
    foreign = set(imported()) - set(sys.stdlib_module_names) - set(PACKAGES)
    undeclared = {
        module for module in foreign if not declared & {normal(one) for one in distributions.get(module, [module])}
    }
    assert undeclared == set()


def test_type_checkers_are_told_that_it_is_typed() -> None:
    assert "Typing :: Typed" in PROJECT["project"]["classifiers"]
    assert [package for package in PACKAGES if not (ROOT / package / "py.typed").is_file()] == []
