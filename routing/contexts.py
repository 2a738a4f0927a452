"""A task as numbers, for voters that learn weights: its dimension, its size, what is in its text, and its vector.

Nothing here names a repository, a data set or a task. What of a text is not known (the database's evidence comes back
without its text) is 0, the middle of each scale.
"""

import math
import re
from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from routing.types import Dimension, Vector

Floats = NDArray[np.float64]

PROJECTED = 8
"""A fixed random projection of the vector keeps similarities roughly (Johnson & Lindenstrauss 1984)."""
TRAITS = 4
SIZE = 1 + len(Dimension) + TRAITS + PROJECTED
INTERCEPT = 0
DIMENSIONS = slice(1, 1 + len(Dimension))
TEXT = slice(1 + len(Dimension), SIZE)

_POSITIONS = {str(dimension): position for position, dimension in enumerate(Dimension, start=1)}
_READ_CHARS = 20_000
_TYPICAL_CHARS = 1500
_TRACEBACK = re.compile(
    r"Traceback \(most recent call last\)|\b[A-Z]\w{0,60}(?:Error|Exception)\b:|^panic: ", re.MULTILINE
)
_FAILING_TEST = re.compile(r"\bFAILED\b|\bAssertionError\b|--- FAIL:|not ok \d")


def traits(text: str) -> tuple[float, ...]:
    """Return what can be counted in a text: (log size, has code, has a traceback, has a failing test), about [-1, 1]."""
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
    if len(known_traits) == TRAITS:
        row[TEXT.start : TEXT.start + TRAITS] = known_traits
    if embedding is not None:
        row[TEXT.start + TRAITS :] = embedding.astype(np.float64) @ _plane(len(embedding))
    return row


@cache
def _plane(length: int) -> Floats:
    plane: Floats = np.random.default_rng(0).normal(size=(length, PROJECTED)) / math.sqrt(PROJECTED)
    return plane
