"""Whether a change takes back what another one did: words alone, which anybody can write, prove no revert."""

from collections import Counter
from collections.abc import Sequence

from workers.ports import FileChange

Lines = Counter[tuple[str, str]]
"""Lines that are not blank, by file."""


def takes_back(work: Sequence[FileChange], later: Sequence[FileChange]) -> bool:
    """Whether `later` removes most lines that `work` added, and brings back most that it removed.

    Not all: others may have changed some in the meantime. Of files without lines to compare, each has to be touched.
    """
    added, removed = _lines(work)
    added_later, removed_later = _lines(later)
    touched = {path for file in later for path in (file.path, file.old_path)}
    return (
        bool(work)
        and _most(added, removed_later)
        and _most(removed, added_later)
        and all(file.path in touched for file in work if not file.patch)
    )


def is_same_work(one: Sequence[FileChange], other: Sequence[FileChange]) -> bool:
    """Whether two changes add and remove the same lines, wherever in their files these stand by now."""
    return bool(one) and _exactly(one) == _exactly(other)


def _exactly(files: Sequence[FileChange]) -> dict[str, tuple[str, list[str]]]:
    return {
        file.path: (file.old_path, sorted(line for line in file.patch.splitlines() if line[:1] in ("+", "-")))
        for file in files
    }


def _most(wanted: Lines, found: Lines) -> bool:
    return (wanted & found).total() * 2 > wanted.total() or not wanted


def _lines(files: Sequence[FileChange]) -> tuple[Lines, Lines]:
    """The added and the removed lines; whatever their indentation, which a move changes."""
    added: Lines = Counter()
    removed: Lines = Counter()
    for file in files:
        for line in file.patch.splitlines():
            text = line[1:].strip()
            if text and line[0] in "+-":
                lines, path = (added, file.path) if line[0] == "+" else (removed, file.old_path)
                lines[path, text] += 1
    return added, removed
