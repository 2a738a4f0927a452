"""Escalation: the best order, and when to stop."""

from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from routing.escalation import Option, plan
from routing.reward import RewardWeights

CHEAP = Option("cheap", 0.5, 0.05)
DEAR = Option("dear", 0.6, 1.0)


def models(options: list[Option], **more: object) -> list[str]:
    values: dict[str, object] = {"failures": 0, "best_score": 0.0, "factor": 0.75, "budget_usd": None, "steps": 3}
    return [step.model for step in plan(options, **(values | more))]  # type: ignore[arg-type]


def test_the_cheap_one_goes_first_when_a_second_try_is_left() -> None:
    assert models([DEAR, CHEAP]) == ["cheap", "dear"]


def test_with_one_try_left_the_better_reward_goes() -> None:
    assert models([DEAR, CHEAP], steps=1) == ["dear"]  # 0.6 - 0.1 against 0.5 - 0.005
    assert models([DEAR, CHEAP], steps=0) == []


def test_it_stops_when_the_gain_is_below_the_cost() -> None:
    assert models([Option("dear", 0.6, 5.0)]) == ["dear"]
    assert models([Option("dear", 0.6, 7.0)]) == []
    assert models([Option("dear", 0.6, 5.0)], failures=2) == []  # the task looks hard by now
    assert models([DEAR], best_score=0.9) == []  # there is little left to gain


def test_no_path_costs_more_than_the_budget() -> None:
    assert models([DEAR, CHEAP], budget_usd=1.0) == ["dear"]
    assert models([DEAR, CHEAP], budget_usd=0.5) == ["cheap"]
    assert models([DEAR, CHEAP], budget_usd=0.01) == []


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.tuples(st.floats(0, 1), st.integers(0, 400).map(lambda cents: cents / 100)), min_size=1, max_size=4),
    st.floats(0, 1),
    st.floats(0.1, 1),
    st.integers(1, 4),
    st.integers(0, 800).map(lambda cents: (cents + 0.5) / 100),  # half a cent beside every sum of costs
)
def test_no_other_order_is_worth_more(
    raw: list[tuple[float, float]], best_score: float, factor: float, steps: int, budget: float
) -> None:
    options = [Option(f"m{n}", score, cost) for n, (score, cost) in enumerate(raw)]
    weights = RewardWeights()

    def worth(path: tuple[Option, ...], failures: int = 0) -> float:
        if not path:
            return 0.0
        success = path[0].score * factor**failures
        return success * (1 - best_score) - 0.1 * path[0].cost_usd + (1 - success) * worth(path[1:], failures + 1)

    paths = [p for length in range(1, steps + 1) for p in permutations(options, length)]
    best = max((worth(p) for p in paths if sum(o.cost_usd for o in p) <= budget + 1e-9), default=0.0)
    found = plan(
        options, failures=0, best_score=best_score, factor=factor, budget_usd=budget, steps=steps, weights=weights
    )

    assert (found[0].value if found else 0.0) == pytest.approx(max(best, 0.0), abs=1e-6)
    assert sum(step.cost_usd for step in found) <= budget + 1e-9
