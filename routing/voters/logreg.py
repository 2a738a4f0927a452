"""LogReg: logistic regressions on a task's embedding and metadata, trained offline (`acrouter train logreg`)."""

import math

from routing.features import features
from routing.logreg_file import LogregModel
from routing.reward import DEFAULT_WEIGHTS as DEFAULT_REWARD
from routing.reward import RewardWeights, reward
from routing.types import Evidence, Memory, Pool, RoutingTask, Vote
from routing.voters.shares import softmax_shares


class LogReg:
    """Votes by each model's probability of success. It learns when it is trained again, not from evidence."""

    name = "logreg"

    def __init__(self, model: LogregModel, weights: RewardWeights = DEFAULT_REWARD) -> None:
        self._model = model
        self._weights = weights
        # How far it beats the majority on tasks that it had not seen is how far it may be believed.
        self._confidence = math.sqrt(max(0.0, min(model.held_out.skill, 1.0)))

    def vote(self, task: RoutingTask, memory: Memory, pool: Pool) -> Vote:  # noqa: ARG002
        if self._confidence == 0.0:
            return Vote(self.name, {}, reason="The trained model was no better than the majority on held-out tasks.")
        if task.embedding is None:
            return Vote(self.name, {}, reason="The task has no text to judge.")
        chances = self._model.probabilities(features(task, self._model.dimensions)).tolist()
        scores = {m: p for m, p in zip(self._model.models, chances, strict=True) if m in pool.names}
        if len(scores) < 2:
            return Vote(self.name, {}, reason="The trained model knows fewer than two of these models.")
        rewards = {m: reward(score, pool.expected_cost_usd(m), self._weights) for m, score in scores.items()}
        best = max(rewards, key=lambda model: rewards[model])
        return Vote(
            self.name,
            softmax_shares(rewards),
            confidence=self._confidence,
            reason=f"By {self._model.attempts} attempts that it was trained on, {best} is worth most: "
            f"success {scores[best]:.0%}.",
            expected_scores=scores,
        )

    def learn(self, evidence: Evidence) -> None:
        """Keep nothing: it is trained offline."""

    def forget(self, key: str) -> None:
        """Keep nothing: it is trained offline."""
