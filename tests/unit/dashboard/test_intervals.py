"""Intervals against published values and by their properties."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.dashboard.intervals import Share, difference, median, wilson


@pytest.mark.parametrize(
    ("successes", "cases", "low", "high"),
    [
        # R. G. Newcombe, "Two-sided confidence intervals for the single proportion", Statistics in Medicine 17 (1998),
        # table I, method 3 (score without continuity correction).
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0000, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilsons_interval_is_the_published_one(successes: int, cases: int, low: float, high: float) -> None:
    assert wilson(successes, cases) == pytest.approx((low, high), abs=5e-5)


def test_nothing_counted_says_nothing() -> None:
    share = Share(0, 0)
    assert share.value is None
    assert (share.low, share.high) == (0.0, 1.0)


def test_more_successes_than_cases_are_a_mistake() -> None:
    with pytest.raises(ValueError, match="3 successes among 2 cases"):
        wilson(3, 2)


@given(st.integers(1, 5000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_the_interval_holds_the_share_and_stays_within_0_and_1(counted: tuple[int, int]) -> None:
    share = Share(*counted)
    assert share.value is not None
    assert 0.0 <= share.low <= share.value <= share.high <= 1.0
    other = Share(share.cases - share.successes, share.cases)
    assert share.low == pytest.approx(1 - other.high, abs=1e-9)


def test_the_difference_of_two_shares_is_newcombes() -> None:
    # Newcombe (1998), "Interval estimation for the difference", table II, (a): 56/70 - 48/80, method 10.
    moved = difference(Share(56, 70), Share(48, 80))
    assert moved is not None
    assert (moved.value, moved.low, moved.high) == pytest.approx((0.2000, 0.0524, 0.3339), abs=5e-5)
    assert difference(Share(1, 2), Share(0, 0)) is None


def test_the_median_of_nothing_is_none() -> None:
    assert median([]) is None
    assert median([3.0, 1.0]) == 2.0
    assert median([3.0, 1.0, 10.0]) == 3.0
