"""Bandit: contextual Thompson sampling or LinUCB over shared and per-model weights, with prices.

Thompson (1933); Agrawal & Goyal 2013 (arXiv 1209.3352); Li et al. 2010 (arXiv 1003.0146). The scores of all models on a
task are jointly Gaussian (`routing.abilities`). The chance of each model to be the best for its price is counted over
scenarios: fixed, evenly spread draws from that Gaussian. They are the shares of its vote.
"""

from typing import Literal

import numpy as np

from routing.abilities import Abilities
from routing.hierarchy import DEFAULT_SPREADS, Spreads
from routing.logits import Floats, sigmoid
from routing.reward import DEFAULT_WEIGHTS as DEFAULT_REWARD
from routing.reward import RewardWeights
from routing.scenarios import SCENARIOS, draws
from routing.types import Evidence, Memory, Pool, RoutingTask, Vote
from routing.voters.shares import softmax_shares


class Bandit:
    """Learns weights of features. Late outcomes replace, missing ones leave the verifier's score, models may join."""

    name = "bandit"

    def __init__(
        self,
        weights: RewardWeights = DEFAULT_REWARD,
        *,
        method: Literal["thompson", "linucb"] = "thompson",
        alpha: float = 1.0,
        spreads: Spreads = DEFAULT_SPREADS,
    ) -> None:
        """`alpha`: standard errors that LinUCB adds to a mean."""
        self._weights = weights
        self._method = method
        self._alpha = alpha
        self._abilities = Abilities(spreads)

    def vote(self, task: RoutingTask, memory: Memory, pool: Pool) -> Vote:  # noqa: ARG002
        names = list(pool.names)
        # What failures on this very task say, the escalation plan adds: here they would count a second time.
        belief = self._abilities.belief(
            task.dimension,
            task.traits,
            task.embedding,
            names,
            pool.priors,
            published=pool.published,
            without_task=task.key,
        )
        deviations = _beside_others(belief.known_apart)
        losses = np.array([self._weights.usd * pool.expected_cost_usd(name) for name in names])
        if self._method == "linucb":
            ahead = self._weights.score * sigmoid(belief.mean + self._alpha * deviations) - losses
            shares = softmax_shares(dict(zip(names, ahead.tolist(), strict=True)))
        else:
            scenarios = sigmoid(draws(belief.mean, belief.known_apart))
            best = np.argmax(self._weights.score * scenarios - losses, axis=1)
            counts = np.bincount(best, minlength=len(names)) / SCENARIOS
            shares = dict(zip(names, counts.tolist(), strict=True))
        leading = sorted(shares, key=lambda name: -shares[name])[:4]
        return Vote(
            voter=self.name,
            shares=shares,
            reason="Chance to be the best for its price, given tasks like this one: "
            + ", ".join(f"{name} {shares[name]:.0%}" for name in leading)
            + ".",
            expected_scores=dict(zip(names, belief.scores().tolist(), strict=True)),
            deviations=dict(zip(names, deviations.tolist(), strict=True)),
            spread=belief.spread,
        )

    def learn(self, evidence: Evidence) -> None:
        self._abilities.learn(evidence)

    def forget(self, key: str) -> None:
        self._abilities.forget(key)


def _beside_others(covariance: Floats) -> Floats:
    """Return (M,) standard deviations without what is as uncertain for all: that cannot change who is best."""
    centred = covariance - covariance.mean(axis=0) - covariance.mean(axis=1)[:, None] + covariance.mean()
    found: Floats = np.sqrt(np.maximum(np.diag(centred), 0.0))
    return found
