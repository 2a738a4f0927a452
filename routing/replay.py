"""What another policy would have earned on the logged decisions: off-policy evaluation.

Dudik, Langford, Li, "Doubly Robust Policy Evaluation and Learning" (arXiv 1103.4601); Swaminathan and Joachims, "The
Self-Normalized Estimator for Counterfactual Learning" (NeurIPS 2015). Each logged decision has the probability with
which its model was chosen; a reward counts by how much likelier the other policy would have chosen the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from routing.errors import RoutingError

Floats = NDArray[np.float64]

RESAMPLES = 2000


@dataclass(frozen=True)
class Round:
    """One logged decision with its reward."""

    propensities: Sequence[float]
    """Of each model, under the policy that decided; they sum to 1."""
    chosen: int
    reward: float
    other: Sequence[float]
    """Of each model, under the policy to be judged; they sum to 1."""
    predicted: Sequence[float]
    """Each model's reward as it was expected before the decision, for the doubly robust estimate."""


@dataclass(frozen=True)
class Estimate:
    """A mean reward with its 95% interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Replay:
    """What the decisions earned, and what another policy would have, by three estimators."""

    rounds: int
    logged: Estimate
    ips: Estimate
    snips: Estimate
    dr: Estimate
    effective_rounds: float
    """Kish's size: how many rounds of equal weight the weighted ones are worth."""
    support: float
    """Part of the other policy's choices that the logging policy could have made; IPS and SNIPS miss the rest."""


def evaluate(rounds: Sequence[Round], *, seed: int = 0, resamples: int = RESAMPLES) -> Replay:
    """Return the estimates with percentile-bootstrap intervals over the rounds.

    Raises:
        RoutingError: there is no round, or one is not possible: a probability outside [0, 1], a sum that is not 1, or
            a model that was chosen with probability 0.
    """
    if not rounds:
        raise RoutingError("replay: there is no decision to judge.")
    for number, one in enumerate(rounds):
        _check(number, one)
    weights = np.array([one.other[one.chosen] / one.propensities[one.chosen] for one in rounds])
    rewards = np.array([one.reward for one in rounds])
    expected = np.array([float(np.dot(one.other, one.predicted)) for one in rounds])
    surprise = np.array([one.reward - one.predicted[one.chosen] for one in rounds])
    support = float(
        np.mean([sum(o for o, p in zip(one.other, one.propensities, strict=True) if p > 0) for one in rounds])
    )
    rng = np.random.default_rng(seed)
    # One draw of rounds for all estimators: they are compared on the same resamples.
    counts = rng.multinomial(len(rounds), np.full(len(rounds), 1 / len(rounds)), size=resamples).astype(np.float64)
    doubly = expected + weights * surprise
    total = float(weights.sum())
    snips = float(weights @ rewards) / total if total > 0 else float("nan")
    return Replay(
        rounds=len(rounds),
        logged=_estimate(float(rewards.mean()), counts @ rewards / len(rounds)),
        ips=_estimate(float(np.mean(weights * rewards)), counts @ (weights * rewards) / len(rounds)),
        snips=_estimate(snips, _ratio(counts @ (weights * rewards), counts @ weights)),
        dr=_estimate(float(doubly.mean()), counts @ doubly / len(rounds)),
        effective_rounds=total**2 / float(weights @ weights) if total > 0 else 0.0,
        support=support,
    )


def _check(number: int, one: Round) -> None:
    sizes = {len(one.propensities), len(one.other), len(one.predicted)}
    if len(sizes) != 1 or not 0 <= one.chosen < len(one.propensities):
        raise RoutingError(f"replay: round {number}: its lists differ in length, or the chosen model is not in them.")
    for name, values in (("propensities", one.propensities), ("other", one.other)):
        if not all(0 <= value <= 1 + 1e-9 for value in values) or abs(sum(values) - 1) > 1e-6:
            raise RoutingError(f"replay: round {number}: '{name}' is no distribution.")
    if not one.propensities[one.chosen] > 0:
        raise RoutingError(f"replay: round {number}: the chosen model had the probability 0.")
    if not all(np.isfinite([one.reward, *one.predicted])):
        raise RoutingError(f"replay: round {number}: a reward is not a number.")


def _ratio(above: Floats, below: Floats) -> Floats:
    ratio: Floats = np.divide(above, below, out=np.full_like(above, np.nan), where=below > 0)
    return ratio


def _estimate(value: float, resampled: Floats) -> Estimate:
    known = resampled[np.isfinite(resampled)]
    if not len(known):
        return Estimate(value, float("nan"), float("nan"))
    low, high = np.percentile(known, [2.5, 97.5])
    return Estimate(value, float(low), float(high))
