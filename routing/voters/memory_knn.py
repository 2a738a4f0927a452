"""MemoryKnn: how the models did on the most similar tasks of the past."""

from collections import defaultdict

from routing.evidence import PROVISIONAL_WEIGHT
from routing.memory import NEIGHBOURS
from routing.priors import prior_scores
from routing.reward import DEFAULT_WEIGHTS as DEFAULT_REWARD
from routing.reward import RewardWeights, reward
from routing.types import Evidence, Memory, Pool, RoutingTask, Vote
from routing.voters.shares import softmax_shares

PRIOR_STRENGTH = 1.0
"""The prior counts as one identical task: one failure next door is a hint and no verdict."""


class MemoryKnn:
    """Similarity-weighted score and cost of the neighbours for each model; abstains without neighbours.

    It keeps nothing of its own: the memory is filled by the router.
    """

    name = "memory_knn"

    def __init__(self, weights: RewardWeights = DEFAULT_REWARD) -> None:
        self._weights = weights

    def vote(self, task: RoutingTask, memory: Memory, pool: Pool) -> Vote:
        if task.embedding is None:
            return Vote(self.name, {}, reason="The task has no text to compare.")
        neighbours = memory.neighbours(task.embedding, NEIGHBOURS)
        known = [n for n in neighbours if n.model in pool.names]
        if not known:
            return Vote(self.name, {}, reason="No similar task was seen yet.", neighbours=neighbours)
        mass: defaultdict[str, float] = defaultdict(float)
        score_sum: defaultdict[str, float] = defaultdict(float)
        cost_sum: defaultdict[str, float] = defaultdict(float)
        for neighbour in known:
            nearness = neighbour.similarity * (1.0 if neighbour.final else PROVISIONAL_WEIGHT)
            mass[neighbour.model] += nearness
            score_sum[neighbour.model] += nearness * neighbour.score
            cost_sum[neighbour.model] += nearness * neighbour.cost_usd
        prior = prior_scores(pool)
        scores, rewards = {}, {}
        for model in pool.names:
            total = mass[model] + PRIOR_STRENGTH
            scores[model] = (score_sum[model] + PRIOR_STRENGTH * prior[model]) / total
            cost = (cost_sum[model] + PRIOR_STRENGTH * pool.expected_cost_usd(model)) / total
            rewards[model] = reward(scores[model], cost, self._weights)
        seen = sum(mass.values())
        best = max(rewards, key=lambda model: rewards[model])
        return Vote(
            voter=self.name,
            shares=softmax_shares(rewards),
            confidence=seen / (seen + PRIOR_STRENGTH),
            reason=f"Among {len(known)} attempts at similar tasks {best} did best for its price.",
            expected_scores=scores,
            neighbours=neighbours,
        )

    def learn(self, evidence: Evidence) -> None:
        """Keep nothing: the neighbours come from the memory."""

    def forget(self, key: str) -> None:
        """Keep nothing: the neighbours come from the memory."""
