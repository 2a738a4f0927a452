"""What an attempt will cost: a model's own mean, times how dear such tasks are for all.

Whoever is tried last is tried on hard tasks, which cost more: its plain mean would put it out of reach. So the costs of
all models, each over its model's mean, are regressed on the tasks' features; the means are then taken of what is left.
Recomputed from the standing evidence in the order of its time: no order of arrival can be seen.
"""

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime

import numpy as np

from routing.contexts import DIMENSIONS, INTERCEPT, SIZE, TEXT, FeatureBook, features
from routing.evidence import EvidenceBook
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
        self._features = FeatureBook()
        self._fit: tuple[dict[str, float], dict[str, float], Floats] | None = None

    def learn(self, evidence: Evidence) -> None:
        stands, old = self._book.put(evidence)
        if self._features.put(evidence):
            self._fit = None
        if not stands:
            return
        if old is not None:
            self._unplace(old)
        insort(self._order[evidence.model], (evidence.at, evidence.key))
        self._fit = None

    def forget(self, key: str) -> None:
        if (old := self._book.remove(key)) is not None:
            self._unplace(old)
            self._features.remove(key)
            self._fit = None

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
        keys = {name: [key for _, key in self._order[name][-WINDOW:]] for name in names}
        rows = {name: np.stack([self._features[key] for key in keys[name]]) for name in names}
        usd = {name: np.array([self._book.get(key).cost_usd for key in keys[name]]) for name in names}
        x = np.concatenate([rows[name] for name in names])
        precision = 1 / _variances()
        curvature = x.T @ x / _NOISE + np.diag(precision)
        start = precision * weights
        for round_ in range(_ROUNDS):
            for name in names:
                dear = _bounded(rows[name] @ weights) if round_ else np.ones(len(usd[name]))
                means[name] = float((usd[name].sum() + prior[name] * PRIOR_ATTEMPTS) / (dear.sum() + PRIOR_ATTEMPTS))
            ratios = np.concatenate([np.minimum(usd[n] / max(means[n], 1e-9), _MOST_RATIO) for n in names])
            weights = np.linalg.solve(curvature, x.T @ ratios / _NOISE + start)
        for name in names:
            dear = _bounded(rows[name] @ weights)
            means[name] = float((usd[name].sum() + prior[name] * PRIOR_ATTEMPTS) / (dear.sum() + PRIOR_ATTEMPTS))
        return means, weights

    def _unplace(self, old: Evidence) -> None:
        order = self._order[old.model]
        order.pop(bisect_left(order, (old.at, old.key)))
        if not order:
            del self._order[old.model]


def _bounded(dear: Floats) -> Floats:
    found: Floats = np.clip(dear, _CHEAPEST, _DEAREST)
    return found


def _variances() -> Floats:
    variances = np.empty(SIZE)
    variances[INTERCEPT] = 0.01
    variances[DIMENSIONS] = 0.1
    variances[TEXT] = 0.5
    return variances
