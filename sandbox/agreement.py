"""Whether another model came to the same change: the self-consistency of two attempts.

Answers that independent samples agree on are likelier to be right (Wang et al., "Self-Consistency Improves Chain of
Thought Reasoning in Language Models", https://arxiv.org/abs/2203.11171). What is compared are the lines that a patch
adds to and removes from each source file, without white space, blank lines and lines that are a comment; the share is
their Jaccard index, 1 for the same change. It costs no money and no sandbox.

The tests' results are no measure of agreement here: an attempt that fixed something is verified and ends the task, and
two that break the same tests agree in vain. So a patch is held only against patches that nothing speaks against, and
only where nothing speaks against itself. A later model has read the earlier patches and was told not to repeat them: a
difference is what it was asked for, and lowers nothing.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from sandbox import patch_text
from sandbox.errors import PatchError
from sandbox.patch import PatchReport
from sandbox.patch_text import FileChange
from sandbox.results import TestCommand
from sandbox.testing.paths import how_tests_run

_HASH = "py pyi rb sh bash pl r jl ex exs yaml yml toml cfg ini mk cmake"
_SLASHES = "c h cc cpp hpp cs go rs js jsx ts tsx mjs cjs java kt kts swift scala php dart"
_DASHES = "sql lua hs elm"
_COMMENTS = {
    **dict.fromkeys(_HASH.split(), ("#",)),
    **dict.fromkeys(_SLASHES.split(), ("//", "/*", "* ", "*/")),
    **dict.fromkeys(_DASHES.split(), ("--",)),
}
"""By the ending of a file's name: how a line begins that is nothing but a comment."""


@dataclass(frozen=True)
class EarlierPatch:
    """What another model handed in for the same task."""

    attempt: int
    """Its number within the task."""
    model: str
    patch: str


@dataclass(frozen=True)
class Agreement:
    """The earlier patch that is nearest to a new one."""

    earlier: EarlierPatch
    share: float
    """Of the changed lines of both, those that are in both: in [0, 1]."""


def nearest(change: PatchReport, earlier: Sequence[EarlierPatch], command: TestCommand | None) -> Agreement | None:
    """Return the earlier patch that agrees most, or None where none of them changes a source file, or this one."""
    ours = _lines(change.source_files)
    if not ours:
        return None
    found = [
        Agreement(one, _share(ours, lines)) for one in earlier if (lines := _lines(_source_files(one.patch, command)))
    ]
    return max(found, key=lambda agreement: agreement.share, default=None)


def _source_files(patch: str, command: TestCommand | None) -> Sequence[FileChange]:
    try:
        files = patch_text.read(patch)
    except PatchError:
        return ()
    return PatchReport(files, (), how_tests_run(command, files)).source_files


def _lines(files: Sequence[FileChange]) -> Counter[tuple[str, str, str]]:
    """Count a change's lines, each with its file and whether it comes or goes."""
    counted: Counter[tuple[str, str, str]] = Counter()
    for change in files:
        marks = _COMMENTS.get(PurePosixPath(change.path).suffix.lstrip(".").lower(), ())
        for sign, lines in (("+", change.added), ("-", change.removed)):
            plain = (line.strip() for line in lines)
            counted.update(
                (change.path, sign, "".join(line.split())) for line in plain if line and not line.startswith(marks)
            )
    return counted


def _share(ours: Counter[tuple[str, str, str]], theirs: Counter[tuple[str, str, str]]) -> float:
    return (ours & theirs).total() / (ours | theirs).total()
