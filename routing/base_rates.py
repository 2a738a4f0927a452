"""How often each model solves a task, as if it had been tried first on every one.

Who is tried after others failed is tried on hard tasks: its plain mean would be too low. What the failures before an
attempt took from its chance (`routing.difficulty`, with the prior's spread) is given back to its score. The means that
this needs are those that it finds: two rounds are enough.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from routing.difficulty import NODE_WEIGHTS, curves
from routing.evidence import EvidenceBook, weight
from routing.failures import PRIOR_SPREAD, EarlierFailures
from routing.types import Evidence

OVERALL = ""
"""The group of all dimensions."""
_ROUNDS = 2
_START, _START_STRENGTH = 0.5, 2.0
_UNIT = 1_000_000

_Pattern = tuple[tuple[str, ...], str]
"""(models that had failed, sorted; the model that tried next)."""


@dataclass
class _Sums:
    """Whole millionths: integers add up to the same in any order."""

    attempts: int = 0
    weight: int = 0
    score: int = 0


@dataclass(frozen=True)
class BaseRate:
    """What was seen of one model in a group. `weight` counts attempts by how sure their scores are."""

    attempts: int = 0
    weight: float = 0.0
    score_sum: float = 0.0

    def mean(self, prior: float, strength: float) -> float:
        """Return the smoothed mean score in [0, 1], the prior counting as `strength` attempts."""
        found = (self.score_sum + prior * strength) / (self.weight + strength)
        return min(max(found, 0.0), 1.0)


class BaseRates:
    """Counts attempts by dimension and by who had failed before; keyed and order-free."""

    def __init__(self) -> None:
        self._book = EvidenceBook()
        self._failures = EarlierFailures(self._book)
        self._stale: set[str] = set()
        """Tasks whose attempts have changed: they are counted again when somebody asks."""
        self._counted: dict[str, list[tuple[str, _Pattern, int, int]]] = {}
        """By task: what it added, as (group, pattern, weight, score)."""
        self._sums: defaultdict[str, defaultdict[_Pattern, _Sums]] = defaultdict(lambda: defaultdict(_Sums))
        self._rates: dict[str, dict[str, BaseRate]] = {}

    def learn(self, evidence: Evidence) -> None:
        stands, old = self._book.put(evidence)
        if not stands:
            return
        self._failures.put(evidence, old)
        self._stale.update((evidence.task_key, (old or evidence).task_key))

    def forget(self, key: str) -> None:
        if (old := self._book.remove(key)) is not None:
            self._failures.drop(old)
            self._stale.add(old.task_key)

    def of(self, group: str) -> Mapping[str, BaseRate]:
        """Return the rates of a dimension, or of all (`OVERALL`), by model; a model without attempts has none."""
        while self._stale:
            self._recount(self._stale.pop())
        if group not in self._rates:
            self._rates[group] = _rates(self._sums[group]) if group in self._sums else {}
        return self._rates[group]

    def _recount(self, task_key: str) -> None:
        for group, pattern, mass, score in self._counted.pop(task_key, ()):
            self._add(group, pattern, -mass, -score, -1)
        found = []
        for key in self._failures.attempts(task_key):
            evidence = self._book.get(key)
            failed = tuple(sorted(self._book.get(earlier).model for earlier in self._failures.of(key)))
            mass = round(weight(evidence) * _UNIT)
            score = round(weight(evidence) * evidence.score * _UNIT)
            for group in (OVERALL, str(evidence.dimension)):
                found.append((group, (failed, evidence.model), mass, score))
                self._add(*found[-1], 1)
        if found:
            self._counted[task_key] = found

    def _add(self, group: str, pattern: _Pattern, mass: int, score: int, attempts: int) -> None:
        self._rates.pop(group, None)
        sums = self._sums[group][pattern]
        sums.attempts += attempts
        sums.weight += mass
        sums.score += score
        if not sums.attempts:
            del self._sums[group][pattern]


def _rates(sums: Mapping[_Pattern, _Sums]) -> dict[str, BaseRate]:
    # Sorted: what follows must not depend on the order in which patterns were first seen.
    patterns = sorted(sums)
    names = sorted({name for failed, model in patterns for name in (*failed, model)})
    place = {name: position for position, name in enumerate(names)}
    models = np.array([place[model] for _, model in patterns])
    weights = np.array([sums[p].weight / _UNIT for p in patterns])
    scores = np.array([sums[p].score / _UNIT for p in patterns])
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
