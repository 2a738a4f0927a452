"""How numbers are written on pages."""

import pytest

from bot.dashboard.render import duration, percent
from templates.escape import usd


@pytest.mark.parametrize(
    ("amount", "words"),
    [(0, "$0.00"), (0.0519, "$0.0519"), (1.154, "$1.15"), (-2457.64, "-$2457.64"), (-0.01, "-$0.0100")],
)
def test_money_has_the_digits_that_it_needs_to_be_seen(amount: float, words: str) -> None:
    assert usd(amount) == words


def test_times_and_shares_are_short() -> None:
    assert [duration(one) for one in (42, 720, 12_600, 345_600, float("nan"), None)] == [
        *("42 s", "12 min", "3.5 h", "4 d", "\u2013", "\u2013")
    ]
    assert [percent(0.125), percent(0.125, 1), percent(None)] == ["12%", "12.5%", "\u2013"]
