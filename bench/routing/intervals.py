"""95% intervals of a mean of few runs, by Student's t."""

import math
from functools import cache

import numpy as np
from numpy.typing import NDArray


def standard_error(values: NDArray[np.float64]) -> float:
    """Return the standard error of the mean of two values or more."""
    return float(values.std(ddof=1) / np.sqrt(len(values)))


def half_width(values: NDArray[np.float64]) -> float:
    """Return how far from its mean of two values or more the truth lies at most, with 95% confidence."""
    return quantile(len(values) - 1) * standard_error(values)


@cache
def quantile(freedom: int) -> float:
    """Return t such that 95% of Student's distribution with so many degrees of freedom lie within [-t, t]."""
    low, high = 0.0, math.pi / 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, freedom) < 0.95 else (low, middle)
    return math.sqrt(freedom) * math.tan(low)


def _within(angle: float, freedom: int) -> float:
    """Return the share within [-t, t], t = sqrt(freedom) tan(angle): Abramowitz & Stegun 26.7.3 and 26.7.4."""
    cosine, odd = math.cos(angle), freedom % 2
    term, total = cosine if odd else 1.0, 0.0
    for power in range(1 + odd, freedom, 2):
        total += term
        term *= cosine**2 * power / (power + 1)
    share = math.sin(angle) * total
    return 2 / math.pi * (angle + share) if odd else share
