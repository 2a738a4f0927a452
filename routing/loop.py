"""The whole loop in one call, for users of the library: route, call the model, verify, escalate, remember."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from routing.errors import RoutingError
from routing.evidence import is_within
from routing.pool import ModelPool, ModelSpec
from routing.types import Evidence, RankedModel, RoutingDecision, RoutingTask
from store.types import utc_now

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class ModelAnswer(Generic[Answer]):
    """What a model handed in. The cost must be known: an unknown one does not count as 0."""

    value: Answer
    cost_usd: float


@dataclass(frozen=True)
class RunAttempt(Generic[Answer]):
    model: str
    answer: Answer
    score: float
    cost_usd: float
    evidence: Evidence
    """What was learnt from it. `observe` it again with the score and `final=True` once the real outcome is known."""

    @property
    def key(self) -> str:
        return self.evidence.key


@dataclass(frozen=True)
class RunResult(Generic[Answer]):
    """The best attempt, and all of them in their order."""

    best: RunAttempt[Answer]
    attempts: tuple[RunAttempt[Answer], ...]
    decision: RoutingDecision

    @property
    def cost_usd(self) -> float:
        return sum(attempt.cost_usd for attempt in self.attempts)


class _Router(Protocol):
    pool: ModelPool

    def decide(self, task: RoutingTask, *, budget_usd: float | None) -> RoutingDecision: ...

    def observe(self, evidence: Evidence) -> Evidence: ...

    def escalate(
        self, task: RoutingTask, decision: RoutingDecision, tried: Mapping[str, float], remaining_usd: float | None
    ) -> RankedModel | None: ...


def run(
    router: _Router,
    task: RoutingTask,
    call_model: Callable[[ModelSpec, RoutingTask], ModelAnswer[Answer]],
    verify: Callable[[RoutingTask, Answer], float],
    *,
    budget_usd: float | None = None,
    good_enough: float = 1.0,
) -> RunResult[Answer]:
    """Work on a task until an answer is good enough or going on is not worth its cost.

    Args:
        router: decides and learns.
        task: what is to be done.
        call_model: returns a model's answer and what it cost in USD.
        verify: returns an answer's score in [0, 1].
        budget_usd: a model that is expected to pass it is not called; None for no limit.
        good_enough: score from which an answer is handed in at once.

    Raises:
        NoModelLeft: no model may be used within the budget.
        RoutingError: `call_model` or `verify` returned something else than they should, or `good_enough` is no score.

    What `call_model` and `verify` raise passes through; the attempts before it are learnt from.
    """
    if not is_within(good_enough, 0.0, 1.0):
        raise RoutingError(f"good_enough is {good_enough!r}; a score is within [0, 1].")
    decision = router.decide(task, budget_usd=budget_usd)
    attempts: list[RunAttempt[Answer]] = []
    following: str | None = decision.chosen
    while following is not None:
        attempt = _attempt(router, task, following, call_model, verify)
        attempts.append(attempt)
        if attempt.score >= good_enough:
            break
        remaining = None if budget_usd is None else budget_usd - sum(a.cost_usd for a in attempts)
        line = router.escalate(task, decision, {a.model: a.score for a in attempts}, remaining)
        following = None if line is None else line.model
    return RunResult(max(attempts, key=lambda a: a.score), tuple(attempts), decision)


def _attempt(
    router: _Router,
    task: RoutingTask,
    model: str,
    call_model: Callable[[ModelSpec, RoutingTask], ModelAnswer[Answer]],
    verify: Callable[[RoutingTask, Answer], float],
) -> RunAttempt[Answer]:
    answer = call_model(router.pool.get(model), task)
    if not isinstance(answer, ModelAnswer):
        raise RoutingError(f"call_model returned {type(answer).__name__}; return ModelAnswer(value, cost_usd).")
    if not is_within(answer.cost_usd, 0.0, math.inf):
        raise RoutingError(
            f"call_model returned a cost of {answer.cost_usd!r} for {model}; give what it cost in USD, 0 if nothing."
        )
    verdict = verify(task, answer.value)
    if not is_within(verdict, 0.0, 1.0):
        raise RoutingError(f"verify returned {verdict!r}; a score is within [0, 1].")
    score = float(verdict)
    evidence = router.observe(
        Evidence(
            key=f"{task.key}:{model}",
            task_key=task.key,
            dimension=task.dimension,
            model=model,
            score=score,
            cost_usd=answer.cost_usd,
            final=False,
            at=utc_now(),
            text=task.text,
            repository=task.repository,
            language=task.language,
            title=task.title,
            link=task.link,
        )
    )
    return RunAttempt(model, answer.value, score, answer.cost_usd, evidence)
