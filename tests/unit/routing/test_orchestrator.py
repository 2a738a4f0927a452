"""The orchestrator: weighted votes, honest propensities, reasons."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from routing.cost_model import CostModel
from routing.costs import Candidates, candidates
from routing.draw import draw, scenario_scores
from routing.orchestrator import Orchestrator
from routing.records import decision_columns
from routing.reward import RewardWeights
from routing.scenarios import SCENARIOS
from routing.types import Neighbour, RoutingDecision, Voter
from store.tables import Decision
from tests.support.routing import FixedMemory, FixedVoter, make_pool, make_task

NAMES = ("small", "medium", "large")
BELIEFS = {"small": 0.55, "medium": 0.5, "large": 0.45}
UNSURE = FixedVoter("unsure", {"small": 1.0}, expected_scores=BELIEFS, deviations=dict.fromkeys(NAMES, 1.0))
UNSURE_ORCHESTRATOR = Orchestrator({"unsure": UNSURE}, max_attempts=1)
RNGS = [np.random.default_rng(seed) for seed in range(600)]
COSTS = {spec.name: 0.1 * spec.prior_cost_usd for spec in make_pool().models}


def pool() -> Candidates:
    return candidates(make_pool(), CostModel(), make_task())


def decide(voters: list[Voter], **more: object) -> RoutingDecision:
    orchestrator = Orchestrator({v.name: v for v in voters}, max_attempts=1)
    weights = {v.name: 1.0 for v in voters}
    return orchestrator.decide(make_task(), FixedMemory(), pool(), np.random.default_rng(1), weights=weights, **more)  # type: ignore[arg-type]


def scores(decision: RoutingDecision) -> dict[str, float]:
    return {line.model: line.expected_score for line in decision.ranked}


def test_beliefs_count_by_weight_and_confidence() -> None:
    high = FixedVoter("high", {"small": 1.0}, expected_scores=dict.fromkeys(NAMES, 0.8))
    low = FixedVoter("low", {"small": 1.0}, expected_scores=dict.fromkeys(NAMES, 0.2))
    unsure = FixedVoter("low", {"small": 1.0}, expected_scores=dict.fromkeys(NAMES, 0.2), confidence=0.25)

    assert scores(decide([high, low]))["medium"] == pytest.approx(0.5)  # the mean of logits
    assert scores(decide([high, unsure]))["medium"] > 0.65
    assert scores(decide([high]))["medium"] == pytest.approx(0.8)


def test_a_voter_that_only_names_models_moves_what_is_believed() -> None:
    believes = FixedVoter("believes", {"small": 1.0}, expected_scores={"small": 0.5, "medium": 0.45, "large": 0.4})
    names = FixedVoter("names", {"medium": 1.0})

    assert decide([believes]).chosen == "small"
    assert decide([believes, names]).chosen == "medium"
    assert decide([believes, names]).namings["names"] == pytest.approx(
        {"small": -1 / 3, "medium": 2 / 3, "large": -1 / 3}
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
        FixedVoter("broken", {"small": 1.0}, deviations={"small": -1.0}),
        FixedVoter("broken", {"small": 1.0}, spread=float("nan")),
        FixedVoter("broken", {"small": 1.0}, spread=-1.0),
        FixedVoter("broken", {}),
    ],
)
def test_a_voter_that_throws_or_talks_nonsense_changes_nothing(broken: Voter) -> None:
    good = FixedVoter("good", {"medium": 0.6, "small": 0.4})
    alone, together = decide([good]), decide([good, broken])

    assert together.ranked == alone.ranked
    assert together.plan == alone.plan
    assert together.spread == alone.spread
    assert [vote.abstains for vote in together.votes] == [False, True]


def test_when_nobody_has_an_opinion_the_prices_speak() -> None:
    decision = decide([FixedVoter("silent", {})])

    assert decision.chosen == "large"  # 0.65 - 0.1 x $0.95 against 0.55 - 0.1 x $0.18: dearer by less than it is better
    assert sum(line.share for line in decision.ranked) == pytest.approx(1.0)


def test_a_pinned_model_comes_first_with_propensity_one() -> None:
    decision = decide([UNSURE], pinned="large")

    assert (decision.chosen, decision.propensity, decision.pinned) == ("large", 1.0, True)
    assert decision.reasons[0] == "large was asked for by name."
    assert decision.scenario == {}


def test_propensities_are_what_really_happens() -> None:
    decisions = [
        UNSURE_ORCHESTRATOR.decide(make_task(), FixedMemory(), pool(), rng, weights={"unsure": 1.0}) for rng in RNGS
    ]
    counts = Counter(decision.chosen for decision in decisions)
    propensities = {line.model: line.propensity for line in decisions[0].ranked}

    assert sum(propensities.values()) == pytest.approx(1.0)
    for name in NAMES:
        assert counts[name] / len(RNGS) == pytest.approx(propensities[name], abs=0.05)
    assert len(counts) > 1
    explored = [decision for decision in decisions if any("is being explored" in reason for reason in decision.reasons)]
    assert explored
    assert all(decision.reasons[0].startswith(f"{decision.chosen} was drawn, ") for decision in explored)


def test_the_choice_is_the_best_of_the_scenario_that_was_drawn() -> None:
    drawn = decide([UNSURE])
    assert drawn.chosen == max(drawn.scenario, key=lambda name: drawn.scenario[name] - COSTS[name])


def test_the_first_choice_begins_the_plan_even_where_nothing_is_worth_its_cost() -> None:
    orchestrator = Orchestrator({"unsure": UNSURE}, RewardWeights(usd=100.0))
    decision = orchestrator.decide(
        make_task(), FixedMemory(), pool(), np.random.default_rng(1), weights={"unsure": 1.0}
    )
    assert [step.model for step in decision.plan] == [decision.chosen]


def test_without_exploration_nothing_is_drawn() -> None:
    decision = decide([UNSURE], explore=False)

    assert {line.model: line.propensity for line in decision.ranked} == {"small": 1.0, "medium": 0.0, "large": 0.0}
    assert decision.scenario == {}


def test_a_voter_that_is_sure_is_not_explored() -> None:
    sure = FixedVoter("sure", {"small": 1.0}, expected_scores=BELIEFS, deviations=dict.fromkeys(NAMES, 0.0))
    assert decide([sure]).propensity == 1.0


@settings(deadline=None, max_examples=60)
@given(
    values=st.lists(st.floats(-5, 1), min_size=3, max_size=3),
    deviations=st.lists(st.floats(0, 3), min_size=3, max_size=3),
    explore=st.booleans(),
)
def test_propensities_are_a_distribution(values: list[float], deviations: list[float], explore: bool) -> None:
    shifts = scenario_scores(np.full(3, 0.5), np.array(deviations)) - 0.5 if explore else None
    result = draw(NAMES, np.array(values), shifts=shifts, rng=np.random.default_rng(0))

    assert sum(result.propensities.values()) == pytest.approx(1.0)
    assert min(result.propensities.values()) >= 0
    assert result.propensities[result.first] >= (1 / SCENARIOS if explore else 1)


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
    orchestrator = Orchestrator({"memory_knn": voter})
    task = make_task(repository="o/r")
    rng = np.random.default_rng(1)
    decision = orchestrator.decide(task, FixedMemory(), pool(), rng, weights={"memory_knn": 1.0})
    told = " ".join(decision.reasons)

    assert "small solved 2 of 3 similar tasks ($0.0200 each)" in told
    assert "large solved 0 of 1 similar task ($0.0200 each), not merged on #12" in told
    assert "77" not in told
    assert "secret" not in told


def test_the_reasons_tell_shares_of_rewards_from_votes() -> None:
    beliefs = {"small": 0.5, "medium": 0.6, "large": 0.5}
    sole = decide([FixedVoter("sole", {"medium": 1.0}, expected_scores=beliefs)])

    assert sole.ranked[0].share < 0.7  # though every vote is for it
    assert sole.reasons[0] == (
        "medium begins the plan with the highest expected reward, first choice of 1 of 1 voter (sole): "
        "expected score 0.60 for $0.1820."
    )


def test_the_reasons_say_where_the_plan_begins_with_a_model_that_no_voter_would_take_alone() -> None:
    beliefs = {"small": 0.5, "medium": 0.4, "large": 0.4}
    against = FixedVoter("against", {"large": 1.0}, expected_scores=beliefs)

    assert decide([against]).reasons[0] == (
        "small begins the plan with the highest expected reward, though no voter would take it alone: "
        "expected score 0.50 for $0.0182."
    )
    silent = decide([FixedVoter("silent", {})]).reasons[0]
    assert "begins the plan with the highest expected reward, and no voter has an opinion: " in silent


def test_a_decision_fits_its_table() -> None:
    decision = decide([UNSURE, FixedVoter("w", {})])
    row = Decision(task_id=1, **decision_columns(decision))

    assert row.chosen == decision.chosen
    assert row.propensity == decision.propensity
    assert [line["model"] for line in row.ranked] == [line.model for line in decision.ranked]
    assert [vote["abstains"] for vote in row.votes] == [False, True]
    assert row.data["plan"][0]["model"] == decision.chosen
