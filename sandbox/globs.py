"""Globs of paths: `*` and `?` within a folder, `**` across folders, `**/` for any folders or none.

A regular expression would take time without end for some globs and paths, both of which may be written to bring that
about. Here all ways to match are followed at once, as bits of one number: the time is that of the path's length.
"""

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

# Of several folders that follow each other, one says it all.
_PIECE = re.compile(r"(?P<folders>(?:\*\*/)+)|(?P<across>\*\*)|(?P<within>\*)|(?P<one>\?)|(?P<literal>.)", re.DOTALL)


def matches(glob: str, path: str) -> bool:
    """Return whether a glob matches a whole path; one without a slash matches in every folder."""
    return _read(glob).matches(path)


@dataclass(frozen=True)
class _Glob:
    """The places in a glob at which something is expected, each by its bit."""

    literals: Mapping[str, int]
    one: int
    within: int
    across: int
    optional: int
    """From here three places may be left out: folders, any number of them, with the slash at their end."""
    end: int

    def matches(self, path: str) -> bool:
        places = self._with_what_may_be_empty(1)
        for character in path:
            after = (places & self.literals.get(character, 0)) << 1 | places & self.across
            if character != "/":
                after |= (places & self.one) << 1 | places & self.within
            places = self._with_what_may_be_empty(after)
        return bool(places & self.end)

    def _with_what_may_be_empty(self, places: int) -> int:
        empty = self.within | self.across | self.optional
        while (more := places | (places & empty) << 1 | (places & self.optional) << 3) != places:
            places = more
        return places


@lru_cache(maxsize=4096)
def _read(glob: str) -> _Glob:
    bits: defaultdict[str, int] = defaultdict(int)
    literals: defaultdict[str, int] = defaultdict(int)
    place = 1
    for piece in _PIECE.finditer(glob if "/" in glob else f"**/{glob}"):
        kind = piece.lastgroup or ""
        if kind == "folders":
            bits["optional"] |= place
            bits["across"] |= place << 1
            literals["/"] |= place << 2
            place <<= 3
            continue
        if kind == "literal":
            literals[piece[0]] |= place
        else:
            bits[kind] |= place
        place <<= 1
    return _Glob(dict(literals), bits["one"], bits["within"], bits["across"], bits["optional"], place)
