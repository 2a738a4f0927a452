"""What became of a PR, as a score."""

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routing.outcome_score import final_score, provisional_score
from routing.reward import RewardWeights, reward
from store.states import OutcomeKind as Kind

outcomes = st.lists(st.sampled_from(list(Kind)))


@pytest.mark.parametrize(
    ("kinds", "score"),
    [
        ([], None),
        ([Kind.CI_PASSED], None),
        ([Kind.CI_FAILED, Kind.CHANGES_REQUESTED], None),
        ([Kind.MERGED], 1.0),
        ([Kind.MERGED, Kind.CI_FAILED], 1.0),
        ([Kind.CLOSED], 0.0),
        ([Kind.MERGED, Kind.REVERTED], 0.0),
        ([Kind.MERGED, Kind.CHANGES_REQUESTED], 0.8),
        ([Kind.MERGED, Kind.FOREIGN_COMMITS], 0.7),
        ([Kind.MERGED, Kind.FOREIGN_COMMITS, Kind.CHANGES_REQUESTED], 0.56),
        ([Kind.CLOSED, Kind.MERGED], 1.0),
    ],
)
def test_the_final_score_in_every_order(kinds: list[Kind], score: float | None) -> None:
    for order in permutations(kinds):
        assert final_score(order) == (None if score is None else pytest.approx(score))


@given(outcomes, st.floats(0, 1), st.randoms(use_true_random=False))
def test_order_and_repetition_change_nothing(kinds: list[Kind], verified: float, random: object) -> None:
    shuffled = kinds * 2
    random.shuffle(shuffled)  # type: ignore[attr-defined]

    assert final_score(shuffled) == final_score(kinds)
    assert provisional_score(verified, shuffled) == provisional_score(verified, kinds)
    assert 0 <= provisional_score(verified, kinds) <= 1


def test_ci_moves_a_provisional_score() -> None:
    assert provisional_score(0.6, [Kind.CI_PASSED]) == pytest.approx(0.7)
    assert provisional_score(0.6, [Kind.CI_FAILED]) == pytest.approx(0.25)


def test_the_reward_weighs_score_and_money() -> None:
    assert reward(1.0, 2.0) == pytest.approx(0.8)
    assert reward(0.5, 2.0, RewardWeights(score=2.0, usd=0.0)) == pytest.approx(1.0)
