"""DimensionBest: which model does best on tasks of this dimension (the paper's strongest simple router)."""

from routing.base_rates import OVERALL, BaseRate, BaseRates
from routing.priors import STRENGTH, prior_scores
from routing.reward import DEFAULT_WEIGHTS as DEFAULT_REWARD
from routing.reward import RewardWeights, reward
from routing.types import Evidence, Memory, Pool, RoutingTask, Vote
from routing.voters.shares import softmax_shares

BACKOFF_STRENGTH = 4.0
"""A model's mean over all dimensions counts as this many attempts in each."""
_LOWEST_CONFIDENCE = 0.2
"""With nothing but published scores and prices known it still says which it would take."""
_HALF_CONFIDENCE = 5.0
"""Attempts at which the confidence is half way up."""

_NOTHING = BaseRate()


class DimensionBest:
    """Smoothed success for each dimension and model, backing off to the model, then to what is published of it."""

    name = "dimension_best"

    def __init__(self, weights: RewardWeights = DEFAULT_REWARD) -> None:
        self._weights = weights
        self._rates = BaseRates()

    def vote(self, task: RoutingTask, memory: Memory, pool: Pool) -> Vote:  # noqa: ARG002
        prior = prior_scores(pool)
        # What failures on this very task say, the escalation plan adds: here they would count a second time.
        every, here = (self._rates.of(group, without_task=task.key) for group in (OVERALL, str(task.dimension)))
        scores, seen = {}, {}
        for model in pool.names:
            overall = every.get(model, _NOTHING).mean(prior[model], STRENGTH)
            rate = here.get(model, _NOTHING)
            scores[model] = rate.mean(overall, BACKOFF_STRENGTH)
            seen[model] = rate.attempts
        rewards = {m: reward(scores[m], pool.expected_cost_usd(m), self._weights) for m in pool.names}
        best = max(rewards, key=lambda model: rewards[model])
        attempts = sum(seen.values())
        certainty = attempts / (attempts + _HALF_CONFIDENCE)
        return Vote(
            voter=self.name,
            shares=softmax_shares(rewards),
            confidence=_LOWEST_CONFIDENCE + (1 - _LOWEST_CONFIDENCE) * certainty,
            reason=self._reason(task, best, scores[best], seen[best]),
            expected_scores=scores,
        )

    def learn(self, evidence: Evidence) -> None:
        self._rates.learn(evidence)

    def forget(self, key: str) -> None:
        self._rates.forget(key)

    def _reason(self, task: RoutingTask, best: str, score: float, attempts: int) -> str:
        kind = str(task.dimension).replace("_", " ")
        if not attempts:
            known = "by other tasks, what is published of it or its price it leads"
            return f"No recent attempt of {best} at a {kind} task is known; {known}."
        plural = "attempt" if attempts == 1 else "attempts"
        leads = f"On {kind} tasks {best} does best for its price"
        return f"{leads}: expected score {score:.2f} after {attempts} recent {plural}."
