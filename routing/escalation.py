"""The escalation plan: the order of attempts that maximises the expected reward, and when to stop.

All models meet one difficulty of the task (`routing.difficulty`), so that each failure lowers what is expected of the
rest, and by how much depends on who failed. An attempt ends the task when its verification passes, rightly or not
(`routing.calibration`); else the next one may be made, while its expected gain, with the value of what follows, is more
than its cost. An attempt that scores s improves the answer in hand (score b) by s - b where s > b; scores are near 0 or
1, so that is s x (1 - b) on average. Every order of up to `AHEAD` models is gone through, level by level.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from routing.difficulty import NODE_WEIGHTS, curves
from routing.logits import Floats
from routing.reward import DEFAULT_WEIGHTS as DEFAULT_REWARD
from routing.reward import RewardWeights
from routing.types import PlannedStep

WIDTH = 8
"""Models considered, the best by their gain and the cheapest for it: the search stays below a few thousand orders."""
AHEAD = 4
"""Attempts that a plan looks ahead, however many may still be made: each more multiplies the orders by what is left of
`WIDTH`. A plan is computed again after each failure, so that later attempts are still made."""

Passes = Callable[[Sequence[str], Floats], Floats]
"""From models and their (M, Q) chances of success to the chances that their verification passes."""


@dataclass(frozen=True)
class Option:
    """A model that may be tried. `score` is expected before any failure on this task, in [0, 1]."""

    model: str
    score: float
    cost_usd: float


@dataclass(frozen=True)
class Outlook:
    """What attempts at one task are expected to bring, given those that were made."""

    options: tuple[Option, ...]
    chances: Floats
    """(M, Q): of success, by difficulty."""
    passes: Floats
    """(M, Q): that the verification passes."""
    weights: Floats
    """(Q,): of the difficulties, after the failures so far; they sum to 1."""
    best_score: float


def outlook(
    options: Sequence[Option],
    *,
    failed: Sequence[Option] = (),
    best_score: float = 0.0,
    spread: float,
    passes: Passes | None = None,
) -> Outlook:
    """Return the outlook of a task after attempts that did not pass.

    Args:
        options: models not tried yet.
        failed: models that were tried, with what was expected of them beforehand.
        best_score: score of the best attempt in hand, 0 with none.
        spread: of the difficulty.
        passes: how far the verifier is to be trusted on this task (`Calibration.passes`); None: fully.
    """
    every = [*options, *failed]
    chances = curves(np.array([option.score for option in every]), spread)
    passing = chances if passes is None else passes([option.model for option in every], chances)
    weights = NODE_WEIGHTS * np.prod(np.maximum(1 - passing[len(options) :], 1e-6), axis=0)
    count = len(options)
    return Outlook(tuple(options), chances[:count], passing[:count], weights / weights.sum(), best_score)


def plan(
    view: Outlook,
    *,
    budget_usd: float | None,
    steps: int,
    weights: RewardWeights = DEFAULT_REWARD,
    first: str | None = None,
) -> tuple[PlannedStep, ...]:
    """Return the steps worth taking, best order first; empty: stopping is best.

    Args:
        view: of the task.
        budget_usd: what may be spent, None for no limit. No path of the plan costs more by expectation.
        steps: attempts that may still be made; at most `AHEAD` are looked at.
        weights: of the reward.
        first: a model that comes first whether it is worth it or not.
    """
    best: tuple[float, Sequence[int]] | None = None
    for values, paths in _levels(view, budget_usd, steps, weights):
        mine = values if first is None else np.where(paths[:, 0] == _place(view, first), values, -np.inf)
        row = int(np.argmax(mine))
        if np.isfinite(mine[row]) and (best is None or mine[row] > best[0]):
            best = float(mine[row]), paths[row].tolist()
    if best is None or (best[0] <= 0 and first is None):
        return ()
    return _told(view, best[1], weights)


def first_values(view: Outlook, *, budget_usd: float | None, steps: int, weights: RewardWeights) -> Floats:
    """Return the (M,) expected rewards of trying each model first and going on as is best.

    Minus infinity for a model that cannot be paid.
    """
    best = np.full(len(view.options), -np.inf)
    for values, paths in _levels(view, budget_usd, steps, weights):
        np.maximum.at(best, paths[:, 0], values)
    return best


def _place(view: Outlook, model: str) -> int:
    return [option.model for option in view.options].index(model)


def _levels(
    view: Outlook, budget_usd: float | None, steps: int, weights: RewardWeights
) -> Iterator[tuple[Floats, NDArray[np.int64]]]:
    """Yield, for orders of 1, 2, ... `steps` models, their (N,) expected rewards and the (N, length) orders."""
    steps = min(steps, AHEAD)
    usd = np.array([option.cost_usd for option in view.options])
    losses = weights.usd * usd
    gains = weights.score * (1 - view.best_score) * view.chances
    gained, missed = (gains - losses[:, None]).T, 1 - view.passes
    reach, value, spent = view.weights[None, :], np.zeros(1), np.zeros(1)
    for level in _orders(len(view.options), _considered(view, gains, losses, steps), steps):
        if level.before is not None:
            reach = reach[level.before.begun] * missed[level.before.models]
        # What an attempt adds is linear in how likely its difficulties still are when it is reached.
        value = value[level.begun] + (reach @ gained)[level.begun, level.models]
        if budget_usd is not None:
            spent = spent[level.begun] + usd[level.models]
            value = np.where(spent <= budget_usd, value, -np.inf)
        yield value, level.paths


@dataclass(frozen=True)
class _Level:
    """All orders of one length over N models."""

    begun: NDArray[np.int64]
    """(N,) the order of the level before that each goes on from."""
    models: NDArray[np.int64]
    """(N,) the last of each."""
    paths: NDArray[np.int64]
    """(N, length)"""
    before: "_Level | None"


@lru_cache(maxsize=8)  # an entry of 60 models is a megabyte
def _orders(count: int, kept: tuple[int, ...], steps: int) -> tuple[_Level, ...]:
    """Return the orders of 1, 2, ... `steps` of `count` models; only the kept ones may follow the first."""
    levels: list[_Level] = []
    used = np.zeros((1, count), dtype=bool)
    paths: NDArray[np.int64] = np.zeros((1, 0), dtype=np.int64)
    for step in range(min(steps, count)):
        pool = np.array(kept) if step else np.arange(count)
        begun, columns = np.nonzero(~used[:, pool])
        if not len(begun):
            break
        models = pool[columns]
        used = used[begun]
        used[np.arange(len(begun)), models] = True
        paths = np.column_stack([paths[begun], models])
        levels.append(_Level(begun, models, paths, levels[-1] if levels else None))
    return tuple(levels)


def _considered(view: Outlook, gains: Floats, losses: Floats, steps: int) -> tuple[int, ...]:
    """Return the models that may stand anywhere in an order; every model may stand first."""
    count = len(view.options)
    if count <= WIDTH or steps == 1:
        return tuple(range(count))
    mean = gains @ view.weights
    by_gain = np.argsort(losses - mean, kind="stable")[: WIDTH // 2]
    by_price = [n for n in np.argsort(losses / np.maximum(mean, 1e-9), kind="stable") if n not in by_gain]
    return tuple(sorted([*by_gain.tolist(), *map(int, by_price[: WIDTH - len(by_gain)])]))


def _told(view: Outlook, path: Sequence[int], weights: RewardWeights) -> tuple[PlannedStep, ...]:
    """Return an order as steps, each given that those before it failed."""
    steps: list[PlannedStep] = []
    reach = view.weights
    reached: list[float] = []
    for model in path:
        option = view.options[model]
        whole = float(reach.sum())
        success = float(reach @ view.chances[model]) / whole
        gain = weights.score * (1 - view.best_score) * success - weights.usd * option.cost_usd
        steps.append(PlannedStep(option.model, min(max(success, 0.0), 1.0), option.cost_usd, gain))
        reached.append(whole)
        reach = reach * (1 - view.passes[model])
    following = 0.0
    told: list[PlannedStep] = []
    for step, whole in zip(reversed(steps), reversed(reached), strict=True):
        following += step.value * whole
        told.append(PlannedStep(step.model, step.success, step.cost_usd, following / whole))
    return tuple(reversed(told))
