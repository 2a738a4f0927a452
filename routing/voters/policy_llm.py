"""PolicyLlm: a small instruct model, served by vLLM, that is shown what is known and names one model of the pool."""

from collections.abc import Callable

import httpx
import structlog

from routing.memory import NEIGHBOURS
from routing.policy.breaker import CircuitBreaker
from routing.policy.client import PolicyClient, PolicyError
from routing.policy.deadline import DeadlineError
from routing.policy.question import ModelStatistics, Question, question
from routing.priors import STRENGTH, prior_scores
from routing.tallies import Tallies
from routing.types import Evidence, Memory, Pool, RoutingTask, Vote

_log = structlog.get_logger(__name__)


class PolicyLlm:
    """Abstains, and never stalls or throws, when its model is slow, down or talks nonsense.

    The router calls `prepare` within its lock and what that returns outside of it: nobody waits for the model but the
    one who asked. `vote` hands over what came back.
    """

    name = "policy_llm"

    def __init__(self, client: PolicyClient, breaker: CircuitBreaker | None = None) -> None:
        self._client = client
        self._breaker = breaker or CircuitBreaker()
        self._tallies = Tallies()

    def prepare(self, task: RoutingTask, memory: Memory, pool: Pool) -> Callable[[], Vote]:
        """Return what asks the model; quick, and needs the router's lock."""
        prior = prior_scores(pool)
        statistics = {}
        for model in pool.names:
            tally = self._tallies.of(task.dimension, model)
            overall = self._tallies.of_model(model).mean_score(prior[model], STRENGTH)
            statistics[model] = ModelStatistics(
                model, tally.attempts, tally.mean_score(overall, STRENGTH), pool.expected_cost_usd(model)
            )
        near = () if task.embedding is None else memory.neighbours(task.embedding, NEIGHBOURS, without_task=task.key)
        asked = question(task, statistics, near)
        return lambda: self._ask(asked)

    def vote(self, task: RoutingTask, memory: Memory, pool: Pool) -> Vote:  # noqa: ARG002
        return task.votes_ahead.get(self.name, Vote(self.name, {}, reason="The policy model was not asked."))

    def learn(self, evidence: Evidence) -> None:
        self._tallies.put(evidence)

    def forget(self, key: str) -> None:
        self._tallies.remove(key)

    def _ask(self, asked: Question) -> Vote:
        if len(asked.choices) < 2:
            return self._abstain("There was nothing to choose for the policy model.")
        if not self._breaker.allows():
            return self._abstain("The policy model failed several times and is left alone for a while.")
        try:
            answer = self._client.ask(asked)
        except Exception as error:  # noqa: BLE001  (a voter never stops a decision)
            self._breaker.failed()
            _log.warning("policy_llm.abstains", model=self._client.model, reason=_why(error))
            return self._abstain(_why(error))
        self._breaker.succeeded()
        return Vote(
            self.name,
            answer.shares,
            confidence=answer.confidence,
            reason=f"The policy model names {answer.name} (probability {answer.confidence:.0%}).",
        )

    def _abstain(self, reason: str) -> Vote:
        return Vote(self.name, {}, reason=reason)


def _why(error: Exception) -> str:
    match error:
        case DeadlineError():
            return f"The policy model did not answer: {error}."
        case httpx.TimeoutException():  # a step of the call took the whole deadline
            return "The policy model did not answer in time."
        case PolicyError():
            return f"The policy model's answer cannot be used: {error}."
        case httpx.HTTPError():
            return f"The policy model cannot be reached ({type(error).__name__})."
        case _:
            return f"The policy model could not be asked ({type(error).__name__})."
