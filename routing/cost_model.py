"""What an attempt will cost: a model's own mean, times how dear such tasks are for all.

Whoever is tried last is tried on hard tasks, which cost more: its plain mean would put it out of reach. So the costs of
all models, each over its model's mean, are regressed on the tasks' features; the means are then taken of what is left.
Recomputed from the standing evidence in the order of its time: no order of arrival can be seen.
"""

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

import numpy as np

from routing.contexts import DIMENSIONS, ELSEWHERE, INTERCEPT, SIZE, TEXT, FeatureBook, features
from routing.evidence import EvidenceBook
from routing.hierarchy import NO_SAY
from routing.logits import Floats
from routing.types import Evidence, RoutingTask

PRIOR_ATTEMPTS = 3.0
"""The cost by price counts as three attempts: costs have a long tail, and one dear task must say little."""
WINDOW = 300
"""Attempts of a model that are looked at, the newest."""
_NOISE = 1.0
"""Variance of an attempt's cost over what was expected, as a ratio."""
_DEAREST, _CHEAPEST = 5.0, 0.2
"""Bounds of how dear a task is believed to be, over the average one."""
_MOST_RATIO = 8.0
_ROUNDS = 2


class CostModel:
    """Learns costs in USD; keyed and order-free like the voters."""

    def __init__(self) -> None:
        self._book = EvidenceBook()
        self._order: defaultdict[str, list[tuple[datetime, str]]] = defaultdict(list)
        self._newest: dict[str, _Newest] = {}
        """By model; gathered again when its attempts change."""
        self._features = FeatureBook()
        self._fit: tuple[dict[str, float], dict[str, float], Floats] | None = None

    def learn(self, evidence: Evidence) -> None:
        stands, old = self._book.put(evidence)
        if self._features.put(evidence):
            self._changed(self._book.get(evidence.key).model)
        if not stands:
            return
        if old is not None:
            self._unplace(old)
        insort(self._order[evidence.model], (evidence.at, evidence.key))
        self._changed(evidence.model)

    def forget(self, key: str) -> None:
        if (old := self._book.remove(key)) is not None:
            self._unplace(old)
            self._features.remove(key)

    def expected(self, task: RoutingTask, prior: Mapping[str, float]) -> dict[str, float]:
        """Return the expected cost in USD of an attempt of each model of `prior`, which gives it by price alone."""
        if self._fit is None or self._fit[0] != prior:
            self._fit = (dict(prior), *self._solve(prior))
        means, weights = self._fit[1:]
        dear = float(_bounded(features(task.dimension, task.traits, task.embedding) @ weights))
        return {name: means[name] * dear for name in prior}

    def _solve(self, prior: Mapping[str, float]) -> tuple[dict[str, float], Floats]:
        names = sorted(name for name in prior if self._order.get(name))
        means = dict(prior)
        weights = np.zeros(SIZE)
        weights[INTERCEPT] = 1.0
        if not names:
            return means, weights
        parts = [self._gathered(name) for name in names]
        every = _Newest(np.concatenate([part.x for part in parts]), np.concatenate([part.usd for part in parts]))
        starts = np.cumsum([0, *(len(part.usd) for part in parts[:-1])])
        counts = np.array([len(part.usd) for part in parts])
        paid = np.add.reduceat(every.usd, starts) + PRIOR_ATTEMPTS * np.array([prior[name] for name in names])
        precision = 1 / _variances()
        # A free model tells nothing of how dear tasks are; its ratios are 0 below.
        telling = [part.curvature for part in parts if not part.free]
        curvature = np.sum(telling, axis=0) / _NOISE + np.diag(precision)
        start = precision * weights
        found = paid / (counts + PRIOR_ATTEMPTS)
        for _ in range(_ROUNDS):
            ratios = np.minimum(every.usd / np.repeat(np.maximum(found, 1e-9), counts), _MOST_RATIO)
            weights = np.linalg.solve(curvature, ratios @ every.x / _NOISE + start)
            found = paid / (np.add.reduceat(_bounded(every.x @ weights), starts) + PRIOR_ATTEMPTS)
        return means | dict(zip(names, found.tolist(), strict=True)), weights

    def _gathered(self, model: str) -> "_Newest":
        if model not in self._newest:
            keys = [key for _, key in self._order[model][-WINDOW:]]
            usd = np.array([self._book.get(key).cost_usd for key in keys])
            self._newest[model] = _Newest(self._features.stacked(keys), usd)
        return self._newest[model]

    def _changed(self, model: str) -> None:
        self._newest.pop(model, None)
        self._fit = None

    def _unplace(self, old: Evidence) -> None:
        self._changed(old.model)
        order = self._order[old.model]
        order.pop(bisect_left(order, (old.at, old.key)))
        if not order:
            del self._order[old.model]


@dataclass(frozen=True)
class _Newest:
    """A model's newest attempts."""

    x: Floats
    """(N, SIZE) features."""
    usd: Floats
    """(N,) costs."""

    @property
    def free(self) -> bool:
        """Whether no attempt cost anything."""
        return not self.usd.any()

    @cached_property
    def curvature(self) -> Floats:
        found: Floats = self.x.T @ self.x
        return found


def _bounded(dear: Floats) -> Floats:
    found: Floats = np.minimum(np.maximum(dear, _CHEAPEST), _DEAREST)
    return found


def _variances() -> Floats:
    variances = np.empty(SIZE)
    variances[INTERCEPT] = 0.01
    variances[DIMENSIONS] = 0.1
    variances[ELSEWHERE] = NO_SAY
    variances[TEXT] = 0.5
    return variances
