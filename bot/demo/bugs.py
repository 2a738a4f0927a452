"""The catalogue of real bugs: released versions of Python projects that carry a bug which their next version fixes.

Nothing of those projects is kept here. An entry names two source distributions by hash, says which part of the
difference between them is the fix, and which of the newer version's own tests prove it: the hidden tests, which no
model sees. The issue, the regression test and the wrong fixes in an entry are our own.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Literal, Self

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from bot.demo.errors import CatalogueError
from bot.demo.package_index import Sdist
from store.suggest import did_you_mean, explain

CATALOGUE = Path(__file__).resolve().parent / "catalogue"

Behaviour = Literal["solves", "misses", "breaks", "nothing"]
"""What a scripted model does with a bug: the real fix, a harmless change that fixes nothing, one that makes the issue's
example work and breaks other tests, or no change at all."""


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Release(_Entry):
    version: str
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class HiddenTests(_Entry):
    """Tests of the fixed version, as pytest node ids; their files are taken from its source distribution."""

    ids: tuple[str, ...] = Field(min_length=1)
    support: tuple[str, ...] = ()
    """Files of the same version that these tests import."""

    @property
    def files(self) -> tuple[str, ...]:
        return (*dict.fromkeys(node.partition("::")[0] for node in self.ids), *self.support)


class Addition(_Entry):
    """Text of ours that is added to the end of a file, or to a new one."""

    path: str
    text: str


class Bug(_Entry):
    """One bug of one released version."""

    name: str
    project: str
    buggy: Release
    fixed: Release
    fix: Mapping[str, tuple[int, ...]]
    """Source files with the numbers (from 1) of the hunks between the two versions that fix the bug; none: all."""
    hidden: HiddenTests
    fails_before: tuple[str, ...] = ()
    """The project's own tests that fail at the buggy version already, on a machine where the others pass."""
    needs: tuple[str, ...] = ()
    """Packages that the project's tests need, beside pytest."""
    title: str
    issue: str
    """Markdown, with a small reproduction."""
    regression_test: Addition
    misses: Addition | None = None
    """What a model hands in that misses the bug; needed where one does."""
    breaks: Addition | None = None
    """The same for one that breaks other tests."""
    skills: Mapping[str, Behaviour]
    """What each scripted model does with this bug."""

    @model_validator(mode="after")
    def _wrong_changes_are_there(self) -> Self:
        for behaviour in ("misses", "breaks"):
            if behaviour in self.skills.values() and getattr(self, behaviour) is None:
                raise ValueError(f"a model {behaviour} this bug, so the entry must say how: add the key '{behaviour}'")
        return self

    @property
    def buggy_sdist(self) -> Sdist:
        return Sdist(self.project, self.buggy.version, self.buggy.sha256)

    @property
    def fixed_sdist(self) -> Sdist:
        return Sdist(self.project, self.fixed.version, self.fixed.sha256)


@cache
def load_catalogue() -> tuple[Bug, ...]:
    """Return all bugs in the order of their names.

    Raises:
        CatalogueError: an entry is wrong; the message names file and key.
    """
    bugs = tuple(_load(path) for path in sorted(CATALOGUE.glob("*.yaml")))
    if not bugs:
        raise CatalogueError(f"{CATALOGUE} holds no bug: the installation is incomplete.")
    return bugs


def find_bug(name: str) -> Bug:
    """Return the bug of that name.

    Raises:
        CatalogueError: there is none.
    """
    bugs = {bug.name: bug for bug in load_catalogue()}
    if name not in bugs:
        raise CatalogueError(f"There is no bug '{name}'.{did_you_mean(name, bugs)} Known: {', '.join(bugs)}.")
    return bugs[name]


def _load(path: Path) -> Bug:
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
        return Bug(name=path.stem, **values)
    except ValidationError as error:
        raise CatalogueError(explain(error, path.name, Bug)) from error
    except (TypeError, yaml.YAMLError) as error:
        raise CatalogueError(f"{path.name}: not a YAML mapping: {error}") from error
