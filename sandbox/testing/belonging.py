"""Which test ids belong to which files, as far as the ids tell.

Ids and files may be a stranger's, hundreds of thousands of each: none is compared with all of the others.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable

from sandbox.testing.jvm_build import is_class_of

_MOST_OF_A_NAME = 25
"""Source files of one name that are looked at: each module of a build may have one."""


def belongs_to(files: Iterable[str]) -> Callable[[str], bool]:
    """Return a function that says whether a test id belongs to one of these files."""
    paths = set(files)
    modules = _without_what_others_begin([f"{path.removesuffix('.py').replace('/', '.')}." for path in paths])
    classes = _by_class(paths)

    def belongs(test: str) -> bool:
        first = test.split("::", 1)[0]
        if first in paths or _one_begins(modules, f"{first}."):
            return True
        of_class = first.rpartition("/")[2].split("$", 1)[0].rpartition(".")[2]
        return any(is_class_of(first, path) for path in classes.get(of_class, ()))

    return belongs


def _without_what_others_begin(names: Iterable[str]) -> list[str]:
    """Return the names, sorted, without those that begin with another: whatever they begin, that other begins."""
    kept: list[str] = []
    for name in sorted(names):
        if not kept or not name.startswith(kept[-1]):
            kept.append(name)
    return kept


def _one_begins(names: list[str], text: str) -> bool:
    """Return whether one of these names, sorted and none the beginning of another, begins a text."""
    place = bisect_right(names, text)
    return place > 0 and text.startswith(names[place - 1])


def _by_class(paths: Iterable[str]) -> dict[str, list[str]]:
    classes: dict[str, list[str]] = {}
    for path in sorted(paths):
        name = path.rpartition("/")[2].rpartition(".")[0]
        alike = classes.setdefault(name, [])
        if len(alike) < _MOST_OF_A_NAME:
            alike.append(path)
    return classes
