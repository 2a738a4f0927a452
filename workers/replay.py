"""The logged decisions of this installation, gone through again with another configuration.

The router of the other configuration lives through the same history: before each decision it learns what was known at
that moment, and no more. Each task's first decision is judged: escalations draw nothing, and a model that a person
asked for was nobody's choice.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy.orm import defer
from sqlmodel import col, select

from routing import Evidence, Router, RoutingTask
from routing.dimension import classify
from routing.errors import NoModelLeft
from routing.replay import Replay, Round, evaluate
from routing.replay_config import ReplayConfig
from routing.reward import RewardWeights, reward
from routing.types import Dimension
from store.database import Database
from store.settings import Settings
from store.tables import Attempt, Decision, MemoryEntry, Task

_LARGE: tuple[Any, ...] = (Attempt.trajectory, Attempt.patch, Attempt.error)
"""Megabytes of each attempt, of which nothing is needed here."""


@dataclass(frozen=True)
class Replayed:
    result: Replay
    left_out: int
    """Logged decisions that could not be judged: without a result yet, or with no model that is in the pool now."""


@dataclass(frozen=True)
class _Logged:
    """A decision with the task and the result of its model."""

    decision: Decision
    task: RoutingTask
    budget_usd: float | None
    entry: MemoryEntry


def replay(database: Database, settings: Settings, config: ReplayConfig) -> Replayed:
    """Return what `config` would have earned on the logged decisions, by the settings' reward.

    Raises:
        ConfigurationError: the other configuration is wrong.
        RoutingError: no decision can be judged.
    """
    router = Router.from_settings(config.settings(settings), seed=0)
    for name in config.deny:
        router.pool.get(name)
    weights = RewardWeights(settings.reward_score_weight, settings.reward_usd_weight)
    logged, without_result, learnt = _history(database)
    rounds: list[Round] = []
    left_out = without_result
    waiting = iter(learnt)
    upcoming = next(waiting, None)
    for one in logged:
        while upcoming is not None and upcoming.at < one.decision.at:
            router.observe(upcoming)
            upcoming = next(waiting, None)
        judged = _judged(router, one, config, weights)
        if judged is None:
            left_out += 1
        else:
            rounds.append(judged)
    return Replayed(evaluate(rounds), left_out)


def _judged(router: Router, one: _Logged, config: ReplayConfig, weights: RewardWeights) -> Round | None:
    ranked = one.decision.ranked
    names = [line["model"] for line in ranked]
    allowed = [name for name in names if name in router.pool.names and name not in config.deny]
    if not allowed or one.decision.chosen not in names or not one.decision.propensity > 0:
        return None
    try:
        again = router.decide(one.task, allow=allowed, budget_usd=one.budget_usd, explore=config.exploration)
    except NoModelLeft:
        return None
    other = {line.model: line.propensity for line in again.ranked}
    return Round(
        propensities=[line["propensity"] for line in ranked],
        chosen=names.index(one.decision.chosen),
        reward=reward(one.entry.score, one.entry.cost_usd, weights),
        other=[other.get(name, 0.0) for name in names],
        predicted=[reward(line["expected_score"], line["expected_cost_usd"], weights) for line in ranked],
    )


def _history(database: Database) -> tuple[list[_Logged], int, Sequence[Evidence]]:
    """Return the decisions in their order, how many have no result, and all evidence in the order it was learnt."""
    with database.reading() as session:
        decisions = session.exec(select(Decision).order_by(col(Decision.id))).all()
        attempts = {a.decision_id: a for a in session.exec(select(Attempt).options(*map(defer, _LARGE))).all()}
        entries = {e.key: e for e in session.exec(select(MemoryEntry)).all()}
        tasks = {t.id: t for t in session.exec(select(Task).options(defer(Task.text))).all()}  # type: ignore[arg-type]
        first: dict[int, Decision] = {}
        for decision in decisions:
            first.setdefault(decision.task_id, decision)
        logged, without_result = [], 0
        for decision in first.values():
            if decision.data.get("pinned"):
                continue
            attempt = attempts.get(decision.id or 0)
            entry = entries.get(f"attempt:{attempt.id}") if attempt is not None else None
            task = tasks[decision.task_id]
            if entry is None:
                without_result += 1
                continue
            logged.append(_Logged(decision, _task(task, entry), task.budget_usd or None, entry))
        provisional = {f"attempt:{a.id}": a for a in attempts.values() if a.score is not None}
        learnt = sorted(_learnt(entries.values(), provisional.get), key=lambda evidence: (evidence.at, evidence.final))
    return logged, without_result, learnt


def _learnt(entries: Iterable[MemoryEntry], attempt_of: Callable[[str], Attempt | None]) -> Iterator[Evidence]:
    """Yield what was learnt of each entry: the verifier's score when it came, and the outcome's when that did."""
    for entry in entries:
        attempt = attempt_of(entry.key)
        if entry.verifier_score is not None and attempt is not None and attempt.finished_at is not None:
            # The row may have changed since, by an open PR's CI too; where it has not, this is the same twice.
            yield _evidence(entry, entry.verifier_score, attempt.finished_at, final=False)
        yield replace(_evidence(entry, entry.score, entry.updated_at, final=entry.final), revision=entry.revision)


def _evidence(entry: MemoryEntry, score: float, at: datetime, *, final: bool) -> Evidence:
    return Evidence(
        key=entry.key,
        task_key=entry.task_key,
        dimension=_dimension(entry),
        model=entry.model,
        score=score,
        cost_usd=entry.cost_usd,
        final=final,
        at=at,
        attempted_at=entry.created_at,
        # Embedded again: the other configuration may have another encoder.
        text=entry.text,
        repository=entry.repository,
        language=entry.language,
        title=entry.title,
    )


def _task(task: Task, entry: MemoryEntry) -> RoutingTask:
    return RoutingTask(
        key=entry.task_key,
        text=entry.text,
        dimension=_dimension(entry),
        repository=entry.repository,
        language=entry.language,
        title=entry.title,
        trigger=task.trigger.value,
    )


def _dimension(entry: MemoryEntry) -> Dimension:
    return Dimension(entry.dimension) if entry.dimension else classify(entry.title, entry.text)
