"""Brier score and reliability of scores whose truth is known."""

import numpy as np
import pytest

from routing.calibration_report import report
from routing.errors import RoutingError


def test_a_score_that_is_a_probability_is_reliable_and_one_turned_around_is_not() -> None:
    rng = np.random.default_rng(1)
    scores = rng.random(4000)
    outcomes = (rng.random(4000) < scores).astype(float)
    good, bad = report(scores.tolist(), outcomes.tolist()), report((1 - scores).tolist(), outcomes.tolist())

    assert good.brier == pytest.approx(1 / 6, abs=0.01)  # the mean of p (1 - p) over [0, 1]
    assert good.expected_calibration_error < 0.03
    assert good.skill == pytest.approx(1 / 3, abs=0.04)
    assert sum(b.outcome_low <= b.mean_score <= b.outcome_high for b in good.bins) >= 8
    assert bad.skill < 0
    assert bad.expected_calibration_error > 0.4


def test_by_hand() -> None:
    found = report([0.0, 0.5, 1.0, 1.0], [0.0, 1.0, 1.0, 0.8])

    assert found.brier == pytest.approx((0.25 + 0.04) / 4)
    assert [(b.low, b.count) for b in found.bins] == [(0.0, 1), (0.5, 1), (0.9, 2)]
    assert found.bins[-1].mean_outcome == pytest.approx(0.9)


def test_nothing_or_nonsense_is_an_error() -> None:
    with pytest.raises(RoutingError, match="no attempt"):
        report([], [])
    with pytest.raises(RoutingError, match="within"):
        report([1.2], [1.0])
