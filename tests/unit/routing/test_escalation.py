"""Escalation: the best order, and when to stop."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from routing.calibration import Calibration
from routing.difficulty import NODE_WEIGHTS, curves
from routing.draw import scenario_shifts
from routing.escalation import AHEAD, Option, Passes, first_values, outlook, plan
from routing.reward import RewardWeights
from routing.types import Dimension
from tests.support.routing import make_evidence, make_task

CHEAP = Option("cheap", 0.5, 0.05)
DEAR = Option("dear", 0.6, 1.0)


def models(
    options: list[Option],
    *,
    failed: Sequence[Option] = (),
    best_score: float = 0.0,
    spread: float = 1.5,
    budget_usd: float | None = None,
    steps: int = 3,
    passes: Passes | None = None,
) -> list[str]:
    view = outlook(options, failed=failed, best_score=best_score, spread=spread, passes=passes)
    return [step.model for step in plan(view, budget_usd=budget_usd, steps=steps)]


def test_the_cheap_one_goes_first_when_a_second_try_is_left() -> None:
    assert models([DEAR, CHEAP]) == ["cheap", "dear"]


def test_with_one_try_left_the_better_reward_goes() -> None:
    assert models([DEAR, CHEAP], steps=1) == ["dear"]  # 0.6 - 0.1 against 0.5 - 0.005
    assert models([DEAR, CHEAP], steps=0) == []


def test_it_stops_when_the_gain_is_below_the_cost() -> None:
    assert models([Option("dear", 0.6, 5.0)]) == ["dear"]
    assert models([Option("dear", 0.6, 7.0)]) == []
    strong = Option("strong", 0.9, 0.1)
    assert models([Option("dear", 0.6, 4.0)], failed=[strong]) == []  # the task looks hard by now
    assert models([DEAR], best_score=0.9) == []  # there is little left to gain


def test_a_strong_models_failure_says_more_than_a_weak_ones() -> None:
    after = [
        plan(outlook([DEAR], failed=[Option("tried", score, 0.1)], spread=1.5), budget_usd=None, steps=1)[0].success
        for score in (0.1, 0.5, 0.9)
    ]
    assert 0.6 > after[0] > after[1] > after[2]


def test_without_spread_failures_say_nothing() -> None:
    view = outlook([DEAR], failed=[Option("tried", 0.9, 0.1)], spread=0.0)
    assert plan(view, budget_usd=None, steps=1)[0].success == pytest.approx(0.6)


def test_a_model_whose_wrong_patches_pass_is_kept_for_last() -> None:
    """What passes is handed in, right or wrong: a cheap model that always passes would end every task."""
    careless, careful = Option("careless", 0.4, 0.01), Option("careful", 0.6, 0.3)
    calibration = Calibration()
    for number in range(40):
        for model, passes in (("careless", 1.0), ("careful", 0.0)):
            said = make_evidence(f"{model}{number}", model, passes)
            calibration.learn(said)
            calibration.learn(make_evidence(said.key, model, 0.0, final=True, minutes=1))

    assert models([careless, careful]) == ["careless", "careful"]
    trusted = partial(calibration.passes, make_task())
    assert models([careless, careful], passes=trusted) == ["careful", "careless"]


def test_where_everything_passes_is_told_by_the_task() -> None:
    """A verifier that lets everything pass on one kind of task may be worth its word on another."""
    calibration = Calibration()
    for number in range(30):
        for dimension, passed in ((Dimension.BUG_FIXING, 0.0), (Dimension.CODE_GENERATION, 1.0)):
            said = make_evidence(f"{dimension}{number}", "cheap", passed, dimension=dimension)
            calibration.learn(said)
            calibration.learn(replace(said, score=0.0, final=True, at=said.at + timedelta(minutes=1)))

    kinds = {kind: make_task(dimension=kind) for kind in (Dimension.BUG_FIXING, Dimension.CODE_GENERATION)}
    first = {kind: models([CHEAP, DEAR], passes=partial(calibration.passes, task))[0] for kind, task in kinds.items()}
    assert first == {Dimension.BUG_FIXING: "cheap", Dimension.CODE_GENERATION: "dear"}


def test_no_path_costs_more_than_the_budget() -> None:
    assert models([DEAR, CHEAP], budget_usd=1.0) == ["dear"]
    assert models([DEAR, CHEAP], budget_usd=0.5) == ["cheap"]
    assert models([DEAR, CHEAP], budget_usd=0.01) == []


def test_of_many_models_the_best_are_tried_after_each_other() -> None:
    weak = [Option(f"weak{n}", 0.1, 0.001) for n in range(10)]
    strong = [Option(f"strong{n}", 0.7, 1.0) for n in range(2)]
    assert models([*weak, *strong], spread=0.5, steps=2) == ["strong0", "strong1"]


def test_a_second_attempt_is_part_of_what_a_scenario_changes() -> None:
    """Only `dear` is uncertain; `cheap` is worth more too where `dear`, which would follow it, is better."""
    view = outlook([CHEAP, DEAR], spread=1.0)
    losses = np.array([0.005, 0.1])
    one, two = (
        scenario_shifts(view, np.array([0.0, 2.0]), losses, steps=steps, weights=RewardWeights()) for steps in (1, 2)
    )
    assert (one[:, 0] == 0).all()
    better = one[:, 1] > 0.05
    assert (two[better, 0] > 0.01).all()
    assert (two[better, 0] < one[better, 1]).all()  # it is reached after a failure only


def test_a_plan_looks_a_few_attempts_ahead_however_many_are_allowed() -> None:
    """Each further attempt multiplies the orders to go through, and a decision holds the router's lock."""
    options = [Option(f"m{n}", 0.3 + 0.05 * n, 0.01 * n) for n in range(7)]
    assert len(models(options, steps=20)) == AHEAD
    assert models(options, steps=20) == models(options, steps=AHEAD)
    view = outlook(options, spread=1.5)
    few, many = (first_values(view, budget_usd=1.0, steps=n, weights=RewardWeights()) for n in (AHEAD, 20))
    assert many.tolist() == few.tolist()


@given(st.lists(st.floats(0, 1), min_size=1, max_size=5), st.floats(0, 4))
@settings(deadline=None)
def test_the_curves_keep_the_mean_scores(scores: list[float], spread: float) -> None:
    found = curves(np.array(scores), spread)
    assert found @ NODE_WEIGHTS == pytest.approx(np.clip(scores, 0.01, 0.99))
    assert (found >= 0).all()
    assert (found <= 1).all()


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.tuples(st.floats(0, 1), st.integers(0, 400).map(lambda cents: cents / 100)), min_size=1, max_size=4),
    st.floats(0, 1),
    st.floats(0.0, 3),
    st.integers(1, 4),
    st.integers(0, 800).map(lambda cents: (cents + 0.5) / 100),  # half a cent beside every sum of costs
)
def test_no_other_order_is_worth_more(
    raw: list[tuple[float, float]], best_score: float, spread: float, steps: int, budget: float
) -> None:
    options = [Option(f"m{n}", score, cost) for n, (score, cost) in enumerate(raw)]
    chances = curves(np.array([score for score, _ in raw]), spread)

    def worth(path: tuple[int, ...]) -> float:
        reach, total = NODE_WEIGHTS, 0.0
        for model in path:
            total += float(reach @ chances[model]) * (1 - best_score) - 0.1 * raw[model][1] * float(reach.sum())
            reach = reach * (1 - chances[model])
        return total

    paths = [p for length in range(1, steps + 1) for p in permutations(range(len(raw)), length)]
    payable = [p for p in paths if sum(raw[m][1] for m in p) <= budget + 1e-9]
    view = outlook(options, best_score=best_score, spread=spread)
    found = plan(view, budget_usd=budget, steps=steps)

    assert (found[0].value if found else 0.0) == pytest.approx(max(map(worth, payable), default=0.0), abs=1e-6) or (
        not found and max(map(worth, payable), default=0.0) <= 0
    )
    assert sum(step.cost_usd for step in found) <= budget + 1e-9
    values = first_values(view, budget_usd=budget, steps=steps, weights=RewardWeights())
    for model in range(len(raw)):
        mine = [worth(p) for p in payable if p[0] == model]
        assert values[model] == (pytest.approx(max(mine), abs=1e-6) if mine else -np.inf)
