"""MemoryKnn: how hard the most similar tasks of the past were, and who solved them.

A neighbour tells two things. Whoever tried it, its result tells how hard such tasks are for every model: it moves the
distribution of the difficulty (`routing.difficulty`), the more the more similar it is. And it tells of the model that
tried it in particular.
"""

from collections import defaultdict

import numpy as np

from routing.base_rates import OVERALL, BaseRate, BaseRates
from routing.difficulty import NODE_WEIGHTS, curves
from routing.evidence import PROVISIONAL_WEIGHT
from routing.failures import PRIOR_SPREAD
from routing.memory import NEIGHBOURS
from routing.priors import STRENGTH, prior_scores
from routing.reward import DEFAULT_WEIGHTS as DEFAULT_REWARD
from routing.reward import RewardWeights, reward
from routing.types import Evidence, Memory, Neighbour, Pool, RoutingTask, Vote
from routing.voters.shares import softmax_shares

OWN_STRENGTH = 2.0
"""What the difficulty says of a model counts as this many identical tasks: one failure next door is no verdict."""

_NOTHING = BaseRate()


class MemoryKnn:
    """Beliefs from the neighbours' results; abstains without neighbours. Of its own it keeps means alone."""

    name = "memory_knn"

    def __init__(self, weights: RewardWeights = DEFAULT_REWARD) -> None:
        self._weights = weights
        self._rates = BaseRates()

    def vote(self, task: RoutingTask, memory: Memory, pool: Pool) -> Vote:
        if task.embedding is None:
            return Vote(self.name, {}, reason="The task's text has no distinctive words to compare.")
        neighbours = memory.neighbours(task.embedding, NEIGHBOURS, without_task=task.key)
        known = [n for n in neighbours if n.model in pool.names]
        if not known:
            return Vote(self.name, {}, reason="No similar task was seen yet.", neighbours=neighbours)
        prior = prior_scores(pool)
        every = self._rates.of(OVERALL, without_task=task.key)
        base = {m: every.get(m, _NOTHING).mean(prior[m], STRENGTH) for m in pool.names}
        names = list(base)
        chances = curves(np.array(list(base.values())), PRIOR_SPREAD)
        logs = np.zeros_like(NODE_WEIGHTS)
        own_mass: defaultdict[str, float] = defaultdict(float)
        own_score: defaultdict[str, float] = defaultdict(float)
        for neighbour in known:
            nearness = _nearness(neighbour)
            chance = chances[names.index(neighbour.model)]
            logs += nearness * (neighbour.score * np.log(chance) + (1 - neighbour.score) * np.log1p(-chance))
            own_mass[neighbour.model] += nearness
            own_score[neighbour.model] += nearness * neighbour.score
        weights = NODE_WEIGHTS * np.exp(logs - logs.max())
        moved = dict(zip(names, (chances @ weights / weights.sum()).tolist(), strict=True))
        scores = {m: (own_score[m] + OWN_STRENGTH * moved[m]) / (own_mass[m] + OWN_STRENGTH) for m in names}
        rewards = {m: reward(scores[m], pool.expected_cost_usd(m), self._weights) for m in names}
        seen = sum(own_mass.values())
        best = max(rewards, key=lambda model: rewards[model])
        return Vote(
            voter=self.name,
            shares=softmax_shares(rewards),
            confidence=seen / (seen + OWN_STRENGTH),
            reason=f"By {len(known)} attempts at similar tasks {best} does best for its price.",
            expected_scores=scores,
            neighbours=neighbours,
        )

    def learn(self, evidence: Evidence) -> None:
        self._rates.learn(evidence)

    def forget(self, key: str) -> None:
        self._rates.forget(key)


def _nearness(neighbour: Neighbour) -> float:
    return neighbour.similarity * (1.0 if neighbour.final else PROVISIONAL_WEIGHT)
