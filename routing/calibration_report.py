"""How well a verifier's score predicts what becomes of a PR: Brier score and reliability, from the own history.

Brier, "Verification of forecasts expressed in terms of probability" (1950).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from routing.errors import RoutingError

BINS = 10
_Z = 1.96


@dataclass(frozen=True)
class Bin:
    """The attempts whose score lies in [low, high)."""

    low: float
    high: float
    count: int
    mean_score: float
    mean_outcome: float
    outcome_low: float
    """95% Wilson interval of the mean outcome."""
    outcome_high: float


@dataclass(frozen=True)
class CalibrationReport:
    """`brier` 0 is best; `base_brier` is that of saying the mean outcome each time."""

    count: int
    brier: float
    base_brier: float
    expected_calibration_error: float
    """Mean distance of score and outcome over the bins, weighted by their counts."""
    bins: Sequence[Bin]

    @property
    def skill(self) -> float:
        """1 is perfect, 0 no better than the mean outcome, below 0 worse."""
        return 1 - self.brier / self.base_brier if self.base_brier > 0 else 0.0


def report(scores: Sequence[float], outcomes: Sequence[float], bins: int = BINS) -> CalibrationReport:
    """Return how scores in [0, 1] agree with final scores in [0, 1] of the same attempts.

    Raises:
        RoutingError: there is no pair, or a number is out of range.
    """
    if not scores or len(scores) != len(outcomes):
        raise RoutingError("calibration: no attempt with a verifier's score has a final outcome yet.")
    u, y = np.array(scores, dtype=np.float64), np.array(outcomes, dtype=np.float64)
    for values in (u, y):
        if not (np.isfinite(values).all() and (values >= 0).all() and (values <= 1).all()):
            raise RoutingError("calibration: scores and outcomes must be within [0, 1].")
    places = np.minimum((u * bins).astype(int), bins - 1)
    found = []
    for place in range(bins):
        inside = places == place
        if inside.any():
            low, high = _wilson(float(y[inside].mean()), int(inside.sum()))
            found.append(
                Bin(
                    place / bins, (place + 1) / bins, int(inside.sum()), float(u[inside].mean()),
                    float(y[inside].mean()), low, high,
                )
            )  # fmt: skip
    return CalibrationReport(
        count=len(u),
        brier=float(np.mean((u - y) ** 2)),
        base_brier=float(np.mean((y.mean() - y) ** 2)),
        expected_calibration_error=sum(b.count * abs(b.mean_score - b.mean_outcome) for b in found) / len(u),
        bins=tuple(found),
    )


def _wilson(mean: float, count: int) -> tuple[float, float]:
    """Interval of a proportion (Wilson 1927); for scores between 0 and 1 it is on the wide side."""
    centre = (mean + _Z**2 / (2 * count)) / (1 + _Z**2 / count)
    half = _Z / (1 + _Z**2 / count) * (mean * (1 - mean) / count + _Z**2 / (4 * count**2)) ** 0.5
    return max(0.0, centre - half), min(1.0, centre + half)
