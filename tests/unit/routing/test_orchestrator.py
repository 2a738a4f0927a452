"""The orchestrator: weighted votes, honest propensities, reasons."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from routing.costs import Candidates, candidates
from routing.draw import draw
from routing.orchestrator import Orchestrator
from routing.records import decision_columns
from routing.tallies import Tallies
from routing.types import Neighbour, RoutingDecision, Vote, Voter
from store.tables import Decision
from tests.support.routing import FixedMemory, FixedVoter, make_pool, make_task

NAMES = ("small", "medium", "large")


def pool() -> Candidates:
    return candidates(make_pool(), Tallies(), "bug_fixing")


def decide(voters: list[Voter], **more: object) -> RoutingDecision:
    orchestrator = Orchestrator({v.name: v for v in voters}, {v.name: 1.0 for v in voters})
    rng = np.random.default_rng(1)
    return orchestrator.decide(make_task(), FixedMemory(), pool(), rng, factor=0.75, **more)  # type: ignore[arg-type]


def test_votes_count_by_weight_and_confidence() -> None:
    sure = FixedVoter("sure", {"small": 1.0})
    unsure = FixedVoter("unsure", {"large": 1.0}, confidence=0.25)

    decision = decide([sure, unsure])

    assert decision.chosen == "small"
    assert {line.model: line.share for line in decision.ranked} == pytest.approx(
        {"small": 0.8, "large": 0.2, "medium": 0.0}
    )


@pytest.mark.parametrize(
    "broken",
    [
        FixedVoter("broken", None),
        FixedVoter("broken", {"unknown": 1.0}),
        FixedVoter("broken", {"small": 0.7}),
        FixedVoter("broken", {"small": float("nan"), "large": 1.0}),
        FixedVoter("broken", {"small": 2.0, "large": -1.0}),
        FixedVoter("broken", {"small": 1.0}, confidence=7.0),
        FixedVoter("broken", {"small": 1.0}, expected_scores={"small": float("inf")}),
        FixedVoter("broken", {}),
    ],
)
def test_a_voter_that_throws_or_talks_nonsense_changes_nothing(broken: Voter) -> None:
    good = FixedVoter("good", {"medium": 0.6, "small": 0.4})
    alone, together = decide([good]), decide([good, broken])

    assert together.ranked == alone.ranked
    assert [vote.abstains for vote in together.votes] == [False, True]


def test_when_nobody_has_an_opinion_the_cheapest_is_taken() -> None:
    decision = decide([FixedVoter("silent", {})])

    assert decision.chosen == "small"
    assert sum(line.share for line in decision.ranked) == pytest.approx(1.0)


def test_a_pinned_model_comes_first_with_propensity_one() -> None:
    decision = decide([FixedVoter("v", {"small": 1.0}, randomised=True)], pinned="large")

    assert (decision.chosen, decision.propensity, decision.pinned) == ("large", 1.0, True)
    assert decision.reasons[0] == "large was asked for by name."
    assert all(not vote.drawn for vote in decision.votes)


def test_propensities_are_what_really_happens() -> None:
    votes = [
        Vote("fixed", {"small": 0.5, "medium": 0.4, "large": 0.1}, weight=1.0),
        Vote("one", {"small": 0.2, "medium": 0.5, "large": 0.3}, weight=0.2, randomised=True),
        Vote("two", {"small": 0.1, "medium": 0.1, "large": 0.8}, weight=0.3, confidence=0.9, randomised=True),
    ]
    rng = np.random.default_rng(3)
    results = [draw(votes, pool(), rng, explore=True) for _ in range(5000)]
    counts = Counter(result.first for result in results)

    for name in NAMES:
        assert counts[name] / 5000 == pytest.approx(results[0].propensities[name], abs=0.03)
    assert counts["medium"]  # two may outvote the fixed favourite


def test_without_exploration_nothing_is_drawn() -> None:
    vote = Vote("bandit", {"small": 0.5, "medium": 0.3, "large": 0.2}, weight=1.0, randomised=True)
    result = draw([vote], pool(), np.random.default_rng(1), explore=False)

    assert result.propensities == {"small": 1.0, "medium": 0.0, "large": 0.0}
    assert result.votes == (vote,)


shares = st.lists(st.floats(0.001, 1), min_size=3, max_size=3).map(
    lambda raw: dict(zip(NAMES, (value / sum(raw) for value in raw), strict=True))
)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(shares, st.floats(0, 3), st.floats(0, 1), st.booleans()), max_size=5), st.booleans())
def test_votes_and_propensities_are_distributions(
    votes: list[tuple[dict[str, float], float, float, bool]], explore: bool
) -> None:
    cast = [
        Vote(f"v{n}", share, confidence=confidence, weight=weight, randomised=randomised)
        for n, (share, weight, confidence, randomised) in enumerate(votes)
    ]
    result = draw(cast, pool(), np.random.default_rng(0), explore=explore)

    assert sum(result.totals.values()) == pytest.approx(1.0)
    assert sum(result.propensities.values()) == pytest.approx(1.0)
    assert min(result.propensities.values()) >= 0
    assert result.propensities[result.first] > 0
    assert result.totals[result.first] == max(result.totals.values())


def neighbour(model: str, score: float, link: str, repository: str) -> Neighbour:
    return Neighbour(link, 0.8, model, score, 0.02, True, "*secret* title", link, link, repository)


def test_the_reasons_name_neighbours_of_this_repository_only() -> None:
    seen = [
        neighbour("small", 1.0, "https://github.com/o/r/issues/1", "o/r"),
        neighbour("small", 1.0, "https://github.com/o/r/issues/2", "o/r"),
        neighbour("small", 0.0, "https://github.com/o/private/issues/77", "o/private"),
        neighbour("large", 0.0, "https://github.com/o/r/pull/12", "o/r"),
    ]
    voter = FixedVoter("memory_knn", {"small": 1.0}, neighbours=seen)
    orchestrator = Orchestrator({"memory_knn": voter}, {"memory_knn": 1.0})
    task = make_task(repository="o/r")
    decision = orchestrator.decide(task, FixedMemory(), pool(), np.random.default_rng(1), factor=0.75)
    told = " ".join(decision.reasons)

    assert "small solved 2 of 3 similar tasks ($0.0200 each)" in told
    assert "large solved 0 of 1 similar task ($0.0200 each), not merged on #12" in told
    assert "77" not in told
    assert "secret" not in told


def test_a_decision_fits_its_table() -> None:
    decision = decide([FixedVoter("v", {"small": 1.0}, randomised=True), FixedVoter("w", {})])
    row = Decision(task_id=1, **decision_columns(decision))

    assert row.chosen == decision.chosen
    assert row.propensity == decision.propensity
    assert [line["model"] for line in row.ranked] == [line.model for line in decision.ranked]
    assert [vote["abstains"] for vote in row.votes] == [False, True]
    assert row.data["plan"][0]["model"] == decision.chosen
