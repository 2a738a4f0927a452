"""Old evidence fades with what is newer, so that nobody is believed to be hopeless for ever."""

import pytest

from routing.recent import HALF_LIFE, WINDOW, RecentEvidence
from routing.types import Voter
from routing.voters.bandit import Bandit
from routing.voters.dimension_best import DimensionBest
from tests.support.routing import FixedMemory, make_evidence, make_pool, make_task


def test_the_newest_count_most_whatever_the_order_of_arrival() -> None:
    recent = RecentEvidence()
    for number in (2, 0, 1):
        recent.put(make_evidence(f"k{number}", "small", 1.0, minutes=number), None)

    keys, counts = recent.newest()

    assert list(keys) == ["k0", "k1", "k2"]
    assert counts.tolist() == pytest.approx([2 ** (-2 / HALF_LIFE), 2 ** (-1 / HALF_LIFE), 1.0])


def test_what_replaces_an_attempt_takes_its_place() -> None:
    recent = RecentEvidence()
    first = make_evidence("k", "small", 0.0)
    recent.put(first, None)
    later = make_evidence("k", "small", 1.0, minutes=1)
    recent.put(later, first)
    assert list(recent.newest()[0]) == ["k"]

    recent.drop(later)
    assert list(recent.newest()[0]) == []


def test_no_more_than_a_window_is_looked_at() -> None:
    recent = RecentEvidence()
    for number in range(WINDOW + 5):
        recent.put(make_evidence(f"k{number:04}", "small", 1.0, minutes=number), None)
    keys, counts = recent.newest()
    assert (len(keys), keys[0]) == (WINDOW, "k0005")
    assert counts[0] == pytest.approx(1 / 16, rel=0.01)


@pytest.mark.parametrize("make", [DimensionBest, Bandit])
def test_a_model_that_once_failed_is_given_another_chance_after_many_attempts_of_others(make: type) -> None:
    def believed(others: int) -> float:
        voter: Voter = make()
        for number in range(10):
            voter.learn(make_evidence(f"small{number}", "small", 0.0, minutes=number))
        for number in range(others):
            voter.learn(make_evidence(f"m{number:04}", "medium", number % 2, minutes=20 + number))
        return dict(voter.vote(make_task(), FixedMemory(), make_pool()).expected_scores)["small"]

    unknown = make_pool().priors["small"]
    soon, later, forgotten = believed(2), believed(300), believed(WINDOW)

    assert soon < later < forgotten
    assert soon < unknown - 0.2
    assert forgotten == pytest.approx(unknown, abs=0.1)
