"""What acrouter saved against always using the best single model, from what was logged.

Always using model m was never tried: its success and cost have to be estimated from the tasks whose *first* attempt m
got. Where the choice was drawn with known propensities, inverse propensity weights take out that the router gave m the
tasks that suit it: the Hajek (self-normalised) estimator, with the interval of its linearisation.

    V(m) = sum(w r) / sum(w),  w = [first choice is m] / propensity,  variance = sum(w^2 (r - V)^2) / sum(w)^2

D. G. Horvitz and D. J. Thompson (1952); A. Swaminathan and T. Joachims, "The Self-Normalized Estimator for
Counterfactual Learning", NIPS 2015. Where choices are not drawn (exploration off), there is nothing to weight by: then
a plug-in estimate takes m's own mean within each dimension and weights the dimensions as all tasks have them. It takes
for granted that within a dimension m was not given easier tasks than the others.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from bot.dashboard.facts import Floats, Ints
from bot.dashboard.intervals import Z95, Interval

Method = Literal["inverse propensity", "plug-in by dimension"]
ENOUGH = 10.0
"""Effective tasks of a model below which nothing is said about always using it."""
_DRAWN = 0.99
"""A choice with a smaller propensity was drawn; one with a greater was as good as fixed."""


@dataclass(frozen=True)
class Logged:
    """Decided tasks whose first model was the router's choice, one entry each."""

    model: Ints
    propensity: Floats
    dimension: Ints
    first_won: Floats
    """1.0 where the first attempt's patch was merged and stayed, else 0.0."""
    first_usd: Floats
    won: Floats
    """1.0 where the task ended so, by whichever attempt."""
    usd: Floats
    """All attempts of the task together."""


@dataclass(frozen=True)
class Policy:
    """A way to work: its success and cost a task, and the reward of both."""

    name: str
    success: Interval
    usd: Interval
    reward: float
    tasks: float
    """How many tasks the estimate is worth (effective sample size)."""


@dataclass(frozen=True)
class Savings:
    """acrouter beside always using the single model with the best estimated reward."""

    method: Method
    acrouter: Policy
    best: Policy
    policies: tuple[Policy, ...]
    """Every model with enough tasks to say something, the best first."""
    tasks: int
    saved_usd: Interval
    """For all the tasks together; negative: acrouter cost more."""
    success_gain: Interval
    """acrouter's success less the best single model's."""
    regret: float
    """Mean reward of the best single model less acrouter's; negative: acrouter did better."""


def compare(
    logged: Logged, models: Sequence[str], score_weight: float = 1.0, usd_weight: float = 0.1
) -> Savings | None:
    """Return acrouter beside the best single model, or None where no model was tried often enough."""
    tasks = len(logged.model)
    if tasks == 0:
        return None
    drawn = float(np.mean(logged.propensity < _DRAWN)) >= 0.5
    method: Method = "inverse propensity" if drawn else "plug-in by dimension"
    policies: list[Policy] = []
    for code in np.unique(logged.model):
        chosen = np.flatnonzero(logged.model == code)
        weights = _propensity_weights(logged, chosen) if drawn else _stratum_weights(logged, chosen)
        if weights is None or (effective := effective_size(weights)) < ENOUGH:
            continue
        success = weighted_mean(weights, logged.first_won[chosen])
        usd = weighted_mean(weights, logged.first_usd[chosen])
        reward = score_weight * success.value - usd_weight * usd.value
        policies.append(Policy(models[int(code)], _in_unit(success), usd, reward, effective))
    if not policies:
        return None
    policies.sort(key=lambda policy: -policy.reward)
    best = policies[0]
    mine = _acrouter(logged, score_weight, usd_weight)
    return Savings(
        method=method,
        acrouter=mine,
        best=best,
        policies=tuple(policies),
        tasks=tasks,
        saved_usd=_scaled(_less(best.usd, mine.usd), tasks),
        success_gain=_less(mine.success, best.success),
        regret=best.reward - mine.reward,
    )


def weighted_mean(weights: Floats, values: Floats) -> Interval:
    """Return the self-normalised weighted mean with the 95 % interval of its linearisation."""
    total = float(weights.sum())
    mean = float((weights * values).sum()) / total
    error = math.sqrt(float((weights**2 * (values - mean) ** 2).sum())) / total
    return Interval(mean, mean - Z95 * error, mean + Z95 * error)


def effective_size(weights: Floats) -> float:
    """Return how many equally weighted tasks would say as much (Kish)."""
    squares = float((weights**2).sum())
    return float(weights.sum()) ** 2 / squares if squares else 0.0


def _propensity_weights(logged: Logged, chosen: Ints) -> Floats:
    """Weigh the tasks that a model got first; all others weigh nothing."""
    propensity = logged.propensity[chosen]
    weights: Floats = 1.0 / np.where(propensity > 0, propensity, np.inf)
    return weights


def _stratum_weights(logged: Logged, chosen: Ints) -> Floats | None:
    """Weigh a model's tasks so that each dimension counts as much as it does among all tasks.

    None where the model was never tried in dimensions that make up half of the tasks.
    """
    all_tasks = np.bincount(logged.dimension)
    own_dimensions = logged.dimension[chosen]
    own = np.bincount(own_dimensions, minlength=len(all_tasks))
    covered = int(all_tasks[own > 0].sum())
    weights: Floats = all_tasks[own_dimensions] / own[own_dimensions]
    return weights if covered * 2 >= len(logged.model) else None


def _acrouter(logged: Logged, score_weight: float, usd_weight: float) -> Policy:
    ones = np.ones(len(logged.won))
    success, usd = weighted_mean(ones, logged.won), weighted_mean(ones, logged.usd)
    reward = score_weight * success.value - usd_weight * usd.value
    return Policy("acrouter", _in_unit(success), usd, reward, float(len(logged.won)))


def _less(first: Interval, second: Interval) -> Interval:
    """Return the difference of two estimates whose errors are taken as independent."""
    moved = first.value - second.value
    half = math.hypot(first.width / 2, second.width / 2)
    return Interval(moved, moved - half, moved + half)


def _scaled(interval: Interval, factor: float) -> Interval:
    return Interval(interval.value * factor, interval.low * factor, interval.high * factor)


def _in_unit(interval: Interval) -> Interval:
    return Interval(interval.value, max(0.0, interval.low), min(1.0, interval.high))
