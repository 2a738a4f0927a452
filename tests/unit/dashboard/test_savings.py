"""What acrouter saved: small cases by hand, and simulations whose truth is known."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.dashboard import savings
from bot.dashboard.savings import Logged, compare
from tests.support.facts import facts_of, lost_by, merged_by

MODELS = ["small", "large"]


def test_four_tasks_by_hand() -> None:
    weights = np.array([2.0, 4.0, 0.0, 2.0])
    found = savings.weighted_mean(weights, np.array([1.0, 0.0, 1.0, 1.0]))
    assert found.value == pytest.approx(0.5)
    # sqrt(2^2 0.5^2 + 4^2 0.5^2 + 2^2 0.5^2) / 8 = sqrt(6) / 8
    assert found.high - found.value == pytest.approx(1.959964 * 6**0.5 / 8, abs=1e-6)
    assert savings.effective_size(weights) == pytest.approx(64 / 24)


def test_savings_regret_and_gain_by_hand() -> None:
    # Ten tasks each; without exploration, so by dimension: large wins 8 of 10 at $1, small wins 5 of 10 at $0.1.
    stories = [merged_by("large", 1.0) for _ in range(8)] + [lost_by("large", 1.0) for _ in range(2)]
    stories += [merged_by("small", 0.1) for _ in range(5)] + [lost_by("small", 0.1) for _ in range(5)]
    from bot.dashboard import stats

    found = stats.savings(facts_of(*stories), 1.0, 0.1)
    assert found is not None
    assert found.method == "plug-in by dimension"
    assert found.best.name == "large"
    assert found.best.reward == pytest.approx(0.8 - 0.1)
    assert found.acrouter.success.value == pytest.approx(0.65)
    assert found.acrouter.usd.value == pytest.approx(0.55)
    assert found.saved_usd.value == pytest.approx(20 * (1.0 - 0.55))
    assert found.success_gain.value == pytest.approx(0.65 - 0.8)
    assert found.regret == pytest.approx(0.7 - (0.65 - 0.055))


def test_too_few_tasks_say_nothing() -> None:
    from bot.dashboard import stats

    assert stats.savings(facts_of(*(merged_by("small") for _ in range(9))), 1.0, 0.1) is None


def test_pinned_tasks_and_those_undecided_are_left_out() -> None:
    from bot.dashboard import stats

    facts = facts_of(merged_by("small", pinned=True), lost_by("small"))
    assert len(stats.logged(facts).model) == 1


def _simulate(rng: np.random.Generator, tasks: int) -> tuple[Logged, dict[str, float]]:
    """Hard and easy tasks: the router likes `large` for the hard ones, so that its plain mean is unfair to it."""
    hard = rng.random(tasks) < 0.5
    chance_large = np.where(hard, 0.8, 0.2)
    large = rng.random(tasks) < chance_large
    # Truth: small solves 70 % of the easy and 10 % of the hard ones, large 90 % and 60 %.
    solves = np.where(large, np.where(hard, 0.6, 0.9), np.where(hard, 0.1, 0.7))
    won = (rng.random(tasks) < solves).astype(float)
    usd = np.where(large, 1.0, 0.1) * rng.uniform(0.5, 1.5, tasks)
    logged = Logged(
        model=large.astype(np.int64),
        propensity=np.where(large, chance_large, 1 - chance_large),
        dimension=np.zeros(tasks, dtype=np.int64),
        first_won=won,
        first_usd=usd,
        won=won,
        usd=usd,
    )
    return logged, {"small": 0.4, "large": 0.75}


def test_weights_take_out_what_the_router_preferred() -> None:
    logged, truth = _simulate(np.random.default_rng(7), 40_000)
    found = compare(logged, MODELS)
    assert found is not None
    assert found.method == "inverse propensity"
    by_name = {policy.name: policy for policy in found.policies}
    for name, value in truth.items():
        assert by_name[name].success.value == pytest.approx(value, abs=0.015)
    plain = logged.first_won[logged.model == 1].mean()
    assert abs(plain - truth["large"]) > 0.05, "the plain mean is wrong here, so the weights are what makes it right"
    assert by_name["large"].usd.value == pytest.approx(1.0, abs=0.02)
    # Truth: always large costs 1.0 a task; the router, half and half, 0.55.
    assert found.saved_usd.value / found.tasks == pytest.approx(0.45, abs=0.02)
    # Truth: always large solves 0.75 for $1.00, a reward of 0.65. The router solves 0.8 x 0.6 + 0.2 x 0.1 = 0.5 of the
    # hard half and 0.2 x 0.9 + 0.8 x 0.7 = 0.74 of the easy one, together 0.62 for $0.55, a reward of 0.565.
    assert found.best.name == "large"
    assert found.success_gain.value == pytest.approx(0.62 - 0.75, abs=0.02)
    assert found.regret == pytest.approx(0.65 - 0.565, abs=0.02)


@given(seed=st.integers(0, 2**32 - 1), price=st.floats(0.01, 100.0))
@settings(max_examples=25, deadline=None)
def test_the_estimates_know_no_currency_and_count_evidence_once(seed: int, price: float) -> None:
    logged, _ = _simulate(np.random.default_rng(seed), 200)
    once = compare(logged, MODELS)
    dearer = replace(logged, first_usd=logged.first_usd * price, usd=logged.usd * price)
    other = compare(dearer, MODELS, usd_weight=0.1 / price)
    twice = compare(Logged(**{name: np.tile(column, 2) for name, column in vars(logged).items()}), MODELS)
    assert once is not None
    assert other is not None
    assert twice is not None
    assert other.best.name == once.best.name
    assert other.regret == pytest.approx(once.regret, abs=1e-9)
    assert other.saved_usd.value == pytest.approx(once.saved_usd.value * price, rel=1e-6, abs=1e-9)
    assert twice.regret == pytest.approx(once.regret, abs=1e-9)
    assert twice.saved_usd.value == pytest.approx(2 * once.saved_usd.value, rel=1e-6, abs=1e-9)
    for policy, again in zip(once.policies, twice.policies, strict=True):
        assert again.usd.width == pytest.approx(policy.usd.width / 2**0.5, rel=1e-6, abs=1e-12)


def test_the_intervals_hold_the_truth_as_often_as_they_say() -> None:
    rng = np.random.default_rng(11)
    held = saved = 0
    rounds = 400
    for _ in range(rounds):
        logged, truth = _simulate(rng, 400)
        found = compare(logged, MODELS)
        assert found is not None
        large = next(policy for policy in found.policies if policy.name == "large")
        held += large.success.low <= truth["large"] <= large.success.high
        saved += found.saved_usd.low <= 0.45 * 400 <= found.saved_usd.high
    assert 0.92 <= held / rounds <= 0.99
    assert 0.92 <= saved / rounds <= 1.0


def test_without_exploration_dimensions_are_weighted_as_all_tasks_have_them() -> None:
    # large got 8 hard and 4 easy tasks, small the others; hard ones are half of all.
    hard, easy = 0, 1
    large = [(hard, 1.0)] * 4 + [(hard, 0.0)] * 4 + [(easy, 1.0)] * 4
    small = [(hard, 0.0)] * 4 + [(easy, 1.0)] * 4 + [(easy, 0.0)] * 4
    rows = [(1, *one) for one in large] + [(0, *one) for one in small]
    model, dimension, won = (np.array(column) for column in zip(*rows, strict=True))
    logged = Logged(model, np.ones(24), dimension, won, np.ones(24), won, np.ones(24))
    found = compare(logged, MODELS)
    assert found is not None
    assert found.method == "plug-in by dimension"
    assert found.best.success.value == pytest.approx(0.5 * 0.5 + 0.5 * 1.0)
