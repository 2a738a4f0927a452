"""How often each model solves a task, as if it had been tried first on every one.

Who is tried after others failed is tried on hard tasks: its plain mean would be too low. What the failures before an
attempt took from its chance (`routing.difficulty`, with the prior's spread) is given back to its score. The means that
this needs are those that it finds: two rounds are enough. Old attempts fade (`routing.recent`).
"""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from routing.difficulty import NODE_WEIGHTS, curves
from routing.evidence import EvidenceBook, weight
from routing.failures import PRIOR_SPREAD, EarlierFailures
from routing.recent import RecentEvidence
from routing.types import Evidence

OVERALL = ""
"""The group of all dimensions."""
_ROUNDS = 2
_START, _START_STRENGTH = 0.5, 2.0

_Pattern = tuple[tuple[str, ...], str]
"""(models that had failed, sorted; the model that tried next)."""


@dataclass(frozen=True)
class _Attempt:
    """What one attempt tells."""

    dimension: str
    pattern: _Pattern
    weight: float
    score: float


@dataclass(frozen=True)
class BaseRate:
    """What was seen of one model in a group of late. `weight` counts attempts by how sure and how new they are."""

    attempts: int = 0
    weight: float = 0.0
    score_sum: float = 0.0

    def mean(self, prior: float, strength: float) -> float:
        """Return the smoothed mean score in [0, 1], the prior counting as `strength` attempts."""
        found = (self.score_sum + prior * strength) / (self.weight + strength)
        return min(max(found, 0.0), 1.0)


class BaseRates:
    """Counts the newest attempts by dimension and by who had failed before; keyed and order-free."""

    def __init__(self) -> None:
        self._book = EvidenceBook()
        self._failures = EarlierFailures(self._book)
        self._recent = RecentEvidence()
        self._stale: set[str] = set()
        """Tasks whose attempts have changed: they are looked at again when somebody asks."""
        self._attempts: dict[str, _Attempt] = {}
        """By key."""
        self._rates: dict[str, dict[str, BaseRate]] = {}

    def learn(self, evidence: Evidence) -> None:
        stands, old = self._book.put(evidence)
        if not stands:
            return
        self._failures.put(evidence, old)
        self._recent.put(evidence, old)
        self._stale.update((evidence.task_key, (old or evidence).task_key))
        self._rates.clear()

    def forget(self, key: str) -> None:
        if (old := self._book.remove(key)) is not None:
            self._failures.drop(old)
            self._recent.drop(old)
            self._attempts.pop(key, None)
            self._stale.add(old.task_key)
            self._rates.clear()

    def of(self, group: str, *, without_task: str = "") -> Mapping[str, BaseRate]:
        """Return the rates of a dimension, or of all (`OVERALL`), by model; a model without attempts has none.

        What the attempts at the task `without_task` have shown is left out.
        """
        while self._stale:
            self._look(self._stale.pop())
        if without_task and (without := self._failures.attempts(without_task)):
            return _rates(self._by_pattern(group, without))
        if group not in self._rates:
            self._rates[group] = _rates(self._by_pattern(group))
        return self._rates[group]

    def _look(self, task_key: str) -> None:
        for key in self._failures.attempts(task_key):
            evidence = self._book.get(key)
            failed = tuple(sorted(self._book.get(earlier).model for earlier in self._failures.of(key)))
            self._attempts[key] = _Attempt(
                str(evidence.dimension), (failed, evidence.model), weight(evidence), evidence.score
            )

    def _by_pattern(self, group: str, without: Collection[str] = ()) -> dict[_Pattern, BaseRate]:
        found: defaultdict[_Pattern, list[tuple[float, float]]] = defaultdict(list)
        keys, counts = self._recent.newest(without=without)
        for key, count in zip(keys, counts.tolist(), strict=True):
            attempt = self._attempts[key]
            if group in (OVERALL, attempt.dimension):
                found[attempt.pattern].append((count * attempt.weight, attempt.score))
        return {
            pattern: BaseRate(len(rows), sum(mass for mass, _ in rows), sum(mass * score for mass, score in rows))
            for pattern, rows in found.items()
        }


def _rates(sums: Mapping[_Pattern, BaseRate]) -> dict[str, BaseRate]:
    if not sums:
        return {}
    # Sorted: what follows must not depend on the order in which patterns were first seen.
    patterns = sorted(sums)
    names = sorted({name for failed, model in patterns for name in (*failed, model)})
    place = {name: position for position, name in enumerate(names)}
    models = np.array([place[model] for _, model in patterns])
    weights = np.array([sums[p].weight for p in patterns])
    scores = np.array([sums[p].score_sum for p in patterns])
    drops = np.zeros(len(patterns))
    if any(failed for failed, _ in patterns):
        tried = np.zeros((len(patterns), len(names)))
        cells = [(row, place[name]) for row, (failed, _) in enumerate(patterns) for name in failed]
        np.add.at(tried, tuple(np.array(cells).T), 1)
        total = np.bincount(models, weights=weights, minlength=len(names)) + _START_STRENGTH
        for _ in range(_ROUNDS):
            won = np.bincount(models, weights=scores + weights * drops, minlength=len(names))
            base = np.minimum(np.maximum((won + _START * _START_STRENGTH) / total, 0.01), 0.99)
            chances = curves(base, PRIOR_SPREAD)
            harder = NODE_WEIGHTS * np.exp(tried @ np.log(np.maximum(1 - chances, 1e-9)))
            drops = base[models] - (harder * chances[models]).sum(axis=1) / harder.sum(axis=1)
    attempts = np.bincount(models, [sums[p].attempts for p in patterns], len(names)).astype(int).tolist()
    mass = np.bincount(models, weights, len(names)).tolist()
    given = np.bincount(models, scores + weights * drops, len(names)).tolist()
    return {name: BaseRate(attempts[n], mass[n], given[n]) for name, n in place.items() if attempts[n]}
