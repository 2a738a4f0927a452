"""Bandit: Thompson sampling, which tries models in proportion to the chance that they are the best.

Thompson (1933); Russo et al., "A Tutorial on Thompson Sampling" (arXiv 1707.02038). A model's score on a dimension has
a Beta posterior whose prior is the model's mean over all dimensions; its reward is that score less its expected cost.
The chance of each model to be the best is computed by quadrature on a grid, and one model is drawn from exactly these
chances: they are the propensities of what is drawn, with no sampling error.
"""

import numpy as np
from numpy.typing import NDArray

from routing.priors import STRENGTH, prior_scores
from routing.reward import DEFAULT_WEIGHTS as DEFAULT_REWARD
from routing.reward import RewardWeights
from routing.tallies import Tallies
from routing.types import Evidence, Memory, Pool, RoutingTask, Vote

BACKOFF_STRENGTH = 4.0
"""How many attempts the model's mean over all dimensions counts as in each: a new dimension is explored again."""
_GRID = 1024


class Bandit:
    """Beta-Bernoulli Thompson sampling for each dimension and model, with prices."""

    name = "bandit"

    def __init__(self, weights: RewardWeights = DEFAULT_REWARD) -> None:
        self._weights = weights
        self._tallies = Tallies()

    def vote(self, task: RoutingTask, memory: Memory, pool: Pool) -> Vote:  # noqa: ARG002
        prior = prior_scores(pool)
        alphas, betas, scores = [], [], {}
        for model in pool.names:
            overall = self._tallies.of_model(model).mean_score(prior[model], STRENGTH)
            tally = self._tallies.of(task.dimension, model)
            alphas.append(tally.score_sum + BACKOFF_STRENGTH * overall)
            betas.append(tally.weight - tally.score_sum + BACKOFF_STRENGTH * (1.0 - overall))
            scores[model] = alphas[-1] / (alphas[-1] + betas[-1])
        losses = [self._weights.usd * pool.expected_cost_usd(model) / self._weights.score for model in pool.names]
        chances = chances_to_be_best(np.array(alphas), np.array(betas), np.array(losses))
        shares = dict(zip(pool.names, chances.tolist(), strict=True))
        return Vote(
            voter=self.name,
            shares=shares,
            reason="Chance to be the best, given all attempts so far: "
            + ", ".join(f"{m} {shares[m]:.0%}" for m in sorted(shares, key=lambda m: -shares[m])[:4])
            + ".",
            expected_scores=scores,
            randomised=True,
        )

    def learn(self, evidence: Evidence) -> None:
        self._tallies.put(evidence)

    def forget(self, key: str) -> None:
        self._tallies.remove(key)


def chances_to_be_best(
    alphas: NDArray[np.float64], betas: NDArray[np.float64], losses: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return, for each of n arms, the probability that Beta(alpha, beta) - loss is the largest; they sum to 1.

    Each posterior is put on a common grid of rewards as the mass of its cells; within a cell ties are shared evenly.
    """
    count = len(alphas)
    if count == 1:
        return np.ones(1)
    # An arm that cannot reach the worst reward of the best-placed arm has no chance; it must not stretch the grid.
    losses = losses - losses.min()
    in_reach = losses < 1.0
    edges = np.linspace(-float(losses[in_reach].max()), 1.0, _GRID + 1)
    centres = (edges[:-1] + edges[1:]) / 2
    scores = centres[None, :] + losses[in_reach, None]
    inside = (scores > 0.0) & (scores < 1.0)
    safe = np.where(inside, scores, 0.5)
    logs = (alphas[in_reach, None] - 1) * np.log(safe) + (betas[in_reach, None] - 1) * np.log1p(-safe)
    logs = np.where(inside, logs, -np.inf)
    mass = np.exp(logs - logs.max(axis=1, keepdims=True))
    mass /= mass.sum(axis=1, keepdims=True)
    below = np.cumsum(mass, axis=1) - mass / 2
    # The product over the *other* arms: of those before and those after, since a division could be by 0.
    ones = np.ones((1, _GRID))
    before = np.cumprod(np.concatenate([ones, below[:-1]]), axis=0)
    after = np.cumprod(np.concatenate([ones, below[:0:-1]]), axis=0)[::-1]
    chances = np.zeros(count)
    chances[in_reach] = np.sum(mass * before * after, axis=1)
    normalised: NDArray[np.float64] = chances / chances.sum()
    return normalised
