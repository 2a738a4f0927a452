"""`Router.escalate`: what counts after a failure, beside what was decided."""

from collections.abc import Mapping

import pytest

from routing import Router
from routing.types import RankedModel, RoutingDecision
from tests.support.routing import make_pool, make_task

TASK = make_task()
SCORES = {"small": 0.5, "medium": 0.6, "large": 0.55}


def decided(
    *, costs: Mapping[str, float] = {}, spread: float = 1.5, scenario: Mapping[str, float] = {}
) -> RoutingDecision:
    """Return a decision that took `small` first, with SCORES for what is expected."""
    ranked = [RankedModel(name, 1 / 3, 1 / 3, score, costs.get(name, 0.1)) for name, score in SCORES.items()]
    return RoutingDecision(ranked, votes=(), reasons=(), neighbours=(), spread=spread, scenario=scenario)


def following(
    decision: RoutingDecision, tried: Mapping[str, float] = {"small": 0.0}, *, attempts: int = 3
) -> RankedModel | None:
    return Router(make_pool(), max_attempts=attempts).escalate(TASK, decision, tried)


def test_the_scenario_that_was_drawn_holds_for_the_whole_task() -> None:
    believed, drawn = following(decided()), following(decided(scenario={"small": 0.5, "medium": 0.3, "large": 0.8}))
    assert believed is not None
    assert drawn is not None
    assert (believed.model, drawn.model) == ("medium", "large")


def test_a_failure_lowers_what_is_expected_by_how_much_tasks_differ() -> None:
    alike, different = following(decided(spread=0.0)), following(decided(spread=2.0))
    assert alike is not None
    assert different is not None
    assert alike.expected_score == pytest.approx(SCORES["medium"])
    assert different.expected_score < SCORES["medium"] - 0.05


def test_a_good_answer_in_hand_is_not_escalated() -> None:
    dear = decided(costs={"medium": 1.0, "large": 1.0})
    assert following(dear, {"small": 0.0}) is not None
    assert following(dear, {"small": 0.9}) is None


def test_no_more_attempts_are_made_than_allowed() -> None:
    tried = {"small": 0.0, "medium": 0.0}
    assert following(decided(), tried, attempts=3) is not None
    assert following(decided(), tried, attempts=2) is None
