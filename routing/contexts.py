"""A task as numbers, for voters that learn weights: its dimension, its size, what is in its text, and its vector.

Nothing here names a repository, a data set or a task. What of a text is not known (the database's evidence comes back
without its text) is 0, the middle of each scale.
"""

import math
import re
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from routing.evidence import precedence
from routing.types import Dimension, Evidence, Vector

Floats = NDArray[np.float64]

PROJECTED = 8
"""A fixed random projection of the vector keeps similarities roughly (Johnson & Lindenstrauss 1984)."""
TRAITS = 4
INTERCEPT = 0
DIMENSIONS = slice(1, 1 + len(Dimension))
ELSEWHERE = DIMENSIONS.stop
"""1 where the task is of another kind than published scores are about."""
TEXT = slice(ELSEWHERE + 1, ELSEWHERE + 1 + TRAITS + PROJECTED)
SIZE = TEXT.stop

PUBLISHED_ABOUT = Dimension.BUG_FIXING
"""What published scores are about, in the main: issues of real repositories (the SWE-bench family)."""
_POSITIONS = {str(dimension): position for position, dimension in enumerate(Dimension, start=1)}
_READ_CHARS = 20_000
_TYPICAL_CHARS = 1500
_TRACEBACK = re.compile(
    r"Traceback \(most recent call last\)|\b[A-Z]\w{0,60}(?:Error|Exception)\b:|^panic: ", re.MULTILINE
)
_FAILING_TEST = re.compile(r"\bFAILED\b|\bAssertionError\b|--- FAIL:|not ok \d")


def traits(text: str) -> tuple[float, ...]:
    """Return what can be counted in a text, about [-1, 1]: log size, and whether code, a traceback, a failing test."""
    if not text:
        return ()
    read = text[:_READ_CHARS]
    size = math.log(len(text) / _TYPICAL_CHARS) / 3
    return (
        min(max(size, -1.5), 1.5),
        0.5 if "```" in read else -0.5,
        0.5 if _TRACEBACK.search(read) else -0.5,
        0.5 if _FAILING_TEST.search(read) else -0.5,
    )


def features(dimension: str, known_traits: Sequence[float], embedding: Vector | None) -> Floats:
    """Return the (SIZE,) features of a task."""
    row = np.zeros(SIZE)
    row[INTERCEPT] = 1.0
    row[_POSITIONS[str(dimension)]] = 1.0
    row[ELSEWHERE] = str(dimension) != PUBLISHED_ABOUT
    if len(known_traits) == TRAITS:
        row[TEXT.start : TEXT.start + TRAITS] = known_traits
    if embedding is not None:
        row[TEXT.start + TRAITS :] = embedding.astype(np.float64) @ _plane(len(embedding))
    return row


class FeatureBook:
    """The features of attempts by key. An outcome may come without the task's words: what is known of them stays."""

    def __init__(self) -> None:
        self._matrix = np.empty((64, SIZE))
        self._places: dict[str, int] = {}
        self._free: list[int] = []
        self._ranks: dict[str, tuple[Any, ...]] = {}

    def put(self, evidence: Evidence) -> bool:
        """Take in evidence and return whether its features are the ones that stand now; no order can be seen."""
        # The vector may come after the rest: `routing.reencoding` makes it.
        rank = (evidence.embedding is not None, bool(evidence.traits), precedence(evidence))
        if evidence.key in self._ranks and self._ranks[evidence.key] >= rank:
            return False
        self._ranks[evidence.key] = rank
        place = self._place(evidence.key)
        self._matrix[place] = _row(evidence)
        return True

    def stacked(self, keys: Sequence[str]) -> Floats:
        """Return the (N, SIZE) features of keys that are there."""
        return self._matrix[[self._places[key] for key in keys]]

    def remove(self, key: str) -> None:
        """Forget a key."""
        self._ranks.pop(key, None)
        if (place := self._places.pop(key, None)) is not None:
            self._free.append(place)

    def _place(self, key: str) -> int:
        """Return a key's row of the matrix, which grows where it is full."""
        if key not in self._places:
            self._places[key] = self._free.pop() if self._free else len(self._places)
            if self._places[key] == len(self._matrix):
                self._matrix = np.concatenate([self._matrix, np.empty_like(self._matrix)])
        return self._places[key]


_last: tuple[Evidence, Floats] | None = None


def _row(evidence: Evidence) -> Floats:
    """Return the features of an evidence; several books ask for those of the same one after each other."""
    global _last  # noqa: PLW0603  (one entry, replaced as a whole)
    known = _last
    if known is not None and known[0] is evidence:
        return known[1]
    row = features(evidence.dimension, evidence.traits, evidence.embedding)
    _last = evidence, row
    return row


@cache
def _plane(length: int) -> Floats:
    plane: Floats = np.random.default_rng(0).normal(size=(length, PROJECTED)) / math.sqrt(PROJECTED)
    return plane
