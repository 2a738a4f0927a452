"""What the detectors of a set-up see of a repository, and what they answer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Tree:
    """A repository's tree."""

    files: Mapping[str, str]
    """The text of the files that detectors ask for, where they are there."""
    names: frozenset[str]
    """All paths."""


@dataclass(frozen=True)
class Found:
    """How a part of a set-up is done."""

    commands: Sequence[str]
    source: str
    """The file that it comes from, for people."""


def tried(command: str, what: str) -> str:
    """Return a command that may fail: what it installs was guessed, and the tests may run without."""
    return f"( {command} ) || echo '{what} could not be installed'"


def where_there_is(program: str, command: str, otherwise: str = "") -> str:
    """Return a command for images with a program; without it the verification says what is missing."""
    return (
        f"if command -v {program} > /dev/null; then {command}; {otherwise}else echo '{program} is not in the image'; fi"
    )
