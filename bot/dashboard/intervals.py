"""Intervals for what is counted from few cases."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

Z95 = 1.959963984540054


@dataclass(frozen=True)
class Interval:
    """An estimate with the ends of its 95 % interval."""

    value: float
    low: float
    high: float

    @property
    def width(self) -> float:
        return self.high - self.low


@dataclass(frozen=True)
class Share:
    """Successes among cases, with Wilson's interval. Without a case it says nothing: value None, interval [0, 1]."""

    successes: int
    cases: int

    @property
    def value(self) -> float | None:
        return self.successes / self.cases if self.cases else None

    @property
    def low(self) -> float:
        return self._wilson()[0]

    @property
    def high(self) -> float:
        return self._wilson()[1]

    def _wilson(self) -> tuple[float, float]:
        return wilson(self.successes, self.cases)


def wilson(successes: int, cases: int, z: float = Z95) -> tuple[float, float]:
    """Return the ends of Wilson's score interval for a share; (0, 1) without cases.

    E. B. Wilson, "Probable Inference, the Law of Succession, and Statistical Inference", JASA 22 (1927), 209-212.

    Raises:
        ValueError: successes are not within 0 and cases.
    """
    if not 0 <= successes <= cases:
        raise ValueError(f"{successes} successes among {cases} cases cannot be")
    if cases == 0:
        return 0.0, 1.0
    share = successes / cases
    spread = z * math.sqrt(share * (1 - share) / cases + z * z / (4 * cases * cases))
    scale = 1 + z * z / cases
    centre = share + z * z / (2 * cases)
    # At the ends the formula is exactly 0 and 1; rounding must not say otherwise.
    low = 0.0 if successes == 0 else (centre - spread) / scale
    high = 1.0 if successes == cases else (centre + spread) / scale
    return low, high


def difference(now: Share, before: Share) -> Interval | None:
    """Return how far a share moved, by Newcombe's hybrid score interval; None where one side has no case.

    R. G. Newcombe, "Interval estimation for the difference between independent proportions", Statistics in Medicine
    17 (1998), 873-890, method 10.
    """
    if now.value is None or before.value is None:
        return None
    moved = now.value - before.value
    low = moved - math.hypot(now.value - now.low, before.high - before.value)
    high = moved + math.hypot(now.high - now.value, before.value - before.low)
    return Interval(moved, low, high)


def median(values: Sequence[float]) -> float | None:
    """Return the middle value, or None of nothing."""
    if not len(values):
        return None
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2
