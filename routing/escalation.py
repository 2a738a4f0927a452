"""The escalation plan: the order of further attempts that maximises the expected reward, and when to stop.

After k failures a model's expected score is its own times factor**k (`routing.failures`). An attempt that scores s
improves the answer in hand (score b) by s - b where s > b; scores are near 0 or 1, so that is s x (1 - b) on average.
An attempt is worth it when this gain, with the value of what follows its failure, is more than its cost.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from routing.reward import DEFAULT_WEIGHTS as DEFAULT_REWARD
from routing.reward import RewardWeights
from routing.types import PlannedStep

_WIDTH = 8
"""Models considered at each step, the best by their own gain: the search stays below a few hundred paths."""


@dataclass(frozen=True)
class Option:
    """A model that may be tried. `score` is expected before any failure on this task, in [0, 1]."""

    model: str
    score: float
    cost_usd: float


def plan(
    options: Sequence[Option],
    *,
    failures: int,
    best_score: float,
    factor: float,
    budget_usd: float | None,
    steps: int,
    weights: RewardWeights = DEFAULT_REWARD,
) -> tuple[PlannedStep, ...]:
    """Return the steps worth taking, best order first; empty: stopping is best.

    Args:
        options: models not tried yet.
        failures: attempts at this task that failed.
        best_score: score of the best attempt in hand, 0 with none.
        factor: what each failure multiplies expected scores with.
        budget_usd: what may be spent, None for no limit. No path of the plan costs more by expectation.
        steps: attempts that may still be made.
        weights: of the reward.
    """
    if steps <= 0:
        return ()
    best: tuple[PlannedStep, ...] = ()
    affordable = [o for o in options if budget_usd is None or o.cost_usd <= budget_usd]
    chance = factor**failures
    for option in sorted(affordable, key=lambda o: _gain(o, chance, best_score, weights), reverse=True)[:_WIDTH]:
        rest = plan(
            [other for other in affordable if other.model != option.model],
            failures=failures + 1,
            best_score=best_score,
            factor=factor,
            budget_usd=None if budget_usd is None else budget_usd - option.cost_usd,
            steps=steps - 1,
            weights=weights,
        )
        success = option.score * chance
        value = _gain(option, chance, best_score, weights) + (1 - success) * (rest[0].value if rest else 0.0)
        if value > (best[0].value if best else 0.0):
            best = (PlannedStep(option.model, success, option.cost_usd, value), *rest)
    return best


def _gain(option: Option, chance: float, best_score: float, weights: RewardWeights) -> float:
    return weights.score * option.score * chance * (1.0 - best_score) - weights.usd * option.cost_usd
