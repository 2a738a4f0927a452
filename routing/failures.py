"""How much one model's failure says about the next: the spread of the tasks' difficulty, learnt from second attempts.

Only attempts after other models' failures on the same task tell of it. Each is counted by who failed before and who
tried; the likelihood of these counts is computed for each spread of a grid, under a documented prior.
"""

import math
from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np

from routing.difficulty import NODE_WEIGHTS, curves
from routing.evidence import EvidenceBook
from routing.logits import Floats, logits
from routing.types import Evidence

SPREADS = (0.3, 0.7, 1.0, 1.5, 2.2, 3.2)
_PRIOR_LOGS = np.array([-0.5 * (math.log(spread / 1.5) / 0.7) ** 2 for spread in SPREADS])
"""Log-normal around 1.5: on it one failure of an average model takes a quarter of another's chance."""
PRIOR_SPREAD = 1.5
SOLVED = 0.5
_BASE_PRIOR, _BASE_STRENGTH = 0.5, 2.0
_ROUNDS = 2
_UNIT = 1_000_000

_Pattern = tuple[tuple[str, ...], str]
"""(models that had failed, by name; the model that tried next)."""


@dataclass
class _Count:
    attempts: int = 0
    score: int = 0


@dataclass(frozen=True)
class FailureModel:
    """What is known of the correlation of failures at one moment."""

    spread: float
    shifts: dict[_Pattern, float] = field(default_factory=dict)
    """By pattern: how far the logit of the score is from what it would be on a task that nobody has tried."""


class FailureCorrelation:
    """Keeps the counts; keyed and order-free like the voters."""

    def __init__(self) -> None:
        self._book = EvidenceBook()
        self._tasks: defaultdict[str, set[str]] = defaultdict(set)
        self._patterns: dict[str, list[tuple[_Pattern, int]]] = {}
        self._pattern_of: dict[str, _Pattern] = {}
        self._counts: defaultdict[_Pattern, _Count] = defaultdict(_Count)
        self._model: FailureModel | None = None

    def learn(self, evidence: Evidence) -> None:
        stands, old = self._book.put(evidence)
        if not stands:
            return
        if old is not None and old.task_key != evidence.task_key:
            self._drop(old)
        self._tasks[evidence.task_key].add(evidence.key)
        self._recount(evidence.task_key)

    def forget(self, key: str) -> None:
        old = self._book.remove(key)
        if old is not None:
            self._drop(old)

    def pattern(self, key: str) -> _Pattern | None:
        """Return who had failed before an attempt, and who made it."""
        return self._pattern_of.get(key)

    def model(self) -> FailureModel:
        """Return what the counts say, computed when they have changed."""
        if self._model is None:
            self._model = self._fit()
        return self._model

    def _fit(self) -> FailureModel:
        # Sorted: the sums below must not depend on the order in which patterns were first seen.
        patterns = sorted(p for p, count in self._counts.items() if count.attempts)
        names = sorted({name for failed, model in patterns for name in (*failed, model)})
        place = {name: position for position, name in enumerate(names)}
        if not any(failed for failed, _ in patterns):
            return FailureModel(PRIOR_SPREAD)
        tried = np.zeros((len(patterns), len(names)))
        for row, (failed, _) in enumerate(patterns):
            for name in failed:
                tried[row, place[name]] += 1
        models = np.array([place[model] for _, model in patterns])
        attempts = np.array([self._counts[p].attempts for p in patterns], dtype=np.float64)
        scores = np.array([self._counts[p].score / _UNIT for p in patterns])
        later = tried.any(axis=1)
        counts = np.bincount(models, weights=attempts, minlength=len(names))
        base = np.full(len(names), _BASE_PRIOR)
        believed = np.exp(_PRIOR_LOGS - _PRIOR_LOGS.max())
        drops = np.zeros(len(patterns))
        for _ in range(_ROUNDS):
            sums = np.bincount(models, weights=scores + attempts * drops, minlength=len(names))
            base = np.clip((sums + _BASE_PRIOR * _BASE_STRENGTH) / (counts + _BASE_STRENGTH), 0.01, 0.99)
            expected = np.clip(_expected(base, tried, models), 0.01, 0.99)  # (spreads, P)
            chance, won, lost = expected[:, later], scores[later], (attempts - scores)[later]
            logs = _PRIOR_LOGS + np.log(chance) @ won + np.log1p(-chance) @ lost
            believed = np.exp(logs - logs.max())
            drops = base[models] - believed @ expected / believed.sum()
        spread = float(believed @ np.array(SPREADS) / believed.sum())
        shifts = logits(base[models] - drops) - logits(base[models])
        return FailureModel(spread, dict(zip(patterns, shifts.tolist(), strict=True)))

    def _drop(self, evidence: Evidence) -> None:
        attempts = self._tasks[evidence.task_key]
        attempts.discard(evidence.key)
        self._pattern_of.pop(evidence.key, None)
        self._recount(evidence.task_key)
        if not attempts:
            del self._tasks[evidence.task_key]

    def _recount(self, task_key: str) -> None:
        self._model = None
        for pattern, score in self._patterns.pop(task_key, ()):
            count = self._counts[pattern]
            count.attempts -= 1
            count.score -= score
            if not count.attempts:
                del self._counts[pattern]
        found = []
        failed: list[str] = []
        for attempt in sorted(map(self._book.get, self._tasks[task_key]), key=lambda e: (e.at, e.key)):
            pattern = (tuple(sorted(name for name in failed if name != attempt.model)), attempt.model)
            self._pattern_of[attempt.key] = pattern
            score = round(attempt.score * _UNIT)
            found.append((pattern, score))
            count = self._counts[pattern]
            count.attempts += 1
            count.score += score
            if attempt.score < SOLVED:
                failed.append(attempt.model)
        if found:
            self._patterns[task_key] = found


def _expected(base: Floats, tried: Floats, models: "np.ndarray[tuple[int], np.dtype[np.int64]]") -> Floats:
    """Return the (spreads, P) score that the model of each pattern is expected to have, for each spread."""
    chances = np.stack([curves(base, spread) for spread in SPREADS])  # (spreads, M, Q)
    weights = NODE_WEIGHTS * np.exp(tried @ np.log(np.maximum(1 - chances, 1e-9)))  # (spreads, P, Q)
    mine = chances[:, models]
    found: Floats = (weights * mine).sum(axis=2) / weights.sum(axis=2)
    return found
