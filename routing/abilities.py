"""What each model can do on which tasks: Bayesian logistic regression with shared and per-model weights.

The logit of model m's score on a task with features z is z.(w + v_m). The shared weights w say how hard such tasks are
for all; a model's own v_m, which are believed to be smaller, what it does better or worse than that. Both have Gaussian
priors, v_m around what was known of m beforehand. The posterior is approximated by a Gaussian at its mode, found by a
fixed number of Newton steps (Laplace; Bishop 2006, section 4.4); given the mode's curvature the shared weights are
integrated out exactly (Lindley & Smith 1972; the hybrid of Li et al. 2010, arXiv 1003.0146, section 3.2).

An attempt that followed failures was made on a harder task than usual. What the failures took from its chance
(`routing.failures`) is an offset of its logit, or models that are tried last would look worse than they are.

Everything is computed from the standing evidence in the order of its time, so that no order of arrival can be seen.
A model's evidence fades with the number of its newer attempts, and what came before a change for the better is dropped
(`routing.change`).
"""

import math
from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

import numpy as np

from routing.change import changed_at
from routing.contexts import DIMENSIONS, INTERCEPT, SIZE, TEXT, FeatureBook, features
from routing.evidence import EvidenceBook, weight
from routing.failures import PRIOR_SPREAD, EarlierFailures, Pairs, pairs, spread_and_offsets
from routing.logits import Floats, logits, sigmoid
from routing.types import Evidence, Vector

HALF_LIFE = 150.0
"""Attempts of a model after which an earlier one counts half."""
WINDOW = 600
"""Attempts of a model that are looked at: older ones count less than a sixteenth."""

_STEPS = 4
"""Newton's method doubles the exact digits with each step. The last two also see what the first two have brought to
light: how failures go together, and which models have changed."""
_FLATTEST = 0.05
"""Least slope of the logistic that a step is divided by: surprises must not throw it off."""


@dataclass(frozen=True)
class Spreads:
    """Standard deviations of the weights before any evidence, in logits.

    Those of dimensions follow the published ID statistics of CodeRouterBench, where the best model of one kind of task
    is often among the worst of another; the others were chosen on drawn streams (`bench.routing.synthetic`).
    """

    shared_level: float = 1.0
    shared_dimension: float = 0.8
    shared_text: float = 1.0
    own_level: float = 0.7
    own_dimension: float = 0.8
    own_text: float = 0.2

    def shared(self) -> Floats:
        """Return the (SIZE,) variances of the shared weights."""
        return _variances(self.shared_level, self.shared_dimension, self.shared_text)

    def own(self) -> Floats:
        """Return the (SIZE,) variances of a model's own weights."""
        return _variances(self.own_level, self.own_dimension, self.own_text)


DEFAULT_SPREADS = Spreads()


@dataclass(frozen=True)
class Belief:
    """The logits of M models' scores on one task: jointly Gaussian."""

    mean: Floats
    """(M,)"""
    covariance: Floats
    """(M, M)"""
    spread: float
    """Of the tasks' difficulty that the features do not tell (`routing.difficulty`)."""
    known_apart: Floats
    """(M, M): the part of it that is not about this very text, but about models and the kind of task."""

    def scores(self) -> Floats:
        """Return the (M,) expected scores (MacKay 1992 for the mean of a logistic)."""
        return sigmoid(self.mean / np.sqrt(1 + math.pi * np.diag(self.covariance) / 8))


@dataclass
class _Rows:
    """One model's standing evidence in the order of time, and its newest as arrays."""

    order: list[tuple[datetime, str]] = field(default_factory=list)
    stacked: tuple[Floats, Floats, Floats] | None = None
    """(N, SIZE) features, (N,) scores and (N,) counts of the newest; None: they have changed."""


@dataclass(frozen=True)
class _Posterior:
    """Of the weights: given the shared ones each model's own block, and the shared ones."""

    blocks: Floats
    """(M, S, S)"""
    means: Floats
    """(M, S): of the whole weights w + v_m."""
    shared_covariance: Floats
    spread: float = PRIOR_SPREAD
    """Of the difficulty that the features do not tell."""


class Abilities:
    """Keeps the evidence; keyed and order-free like the voters."""

    def __init__(self, spreads: Spreads = DEFAULT_SPREADS) -> None:
        self._shared = spreads.shared()
        self._own = spreads.own()
        self._book = EvidenceBook()
        self._features = FeatureBook()
        self._rows: defaultdict[str, _Rows] = defaultdict(_Rows)
        self._failures = EarlierFailures()
        self._fit: tuple[dict[str, float], dict[str, int], _Posterior] | None = None

    def learn(self, evidence: Evidence) -> None:
        stands, old = self._book.put(evidence)
        if self._features.put(evidence) and not stands:
            self._changed(self._book.get(evidence.key).model)
        if not stands:
            return
        if old is not None:
            self._unplace(old)
        insort(self._rows[evidence.model].order, (evidence.at, evidence.key))
        self._changed(evidence.model)
        self._failures.put(evidence, old, self._book)

    def forget(self, key: str) -> None:
        old = self._book.remove(key)
        if old is None:
            return
        self._unplace(old)
        self._features.remove(key)
        self._failures.drop(old, self._book)
        self._fit = None

    def belief(
        self, dimension: str, traits: Sequence[float], embedding: Vector | None, prior: Mapping[str, float]
    ) -> Belief:
        """Return what is believed of the models of `prior`, which gives their scores before any evidence, on a task."""
        names, posterior = self._fitted(prior)
        rows = [names[name] for name in prior]
        z = features(dimension, traits, embedding)
        plain = z.copy()
        plain[TEXT] = 0.0
        blocks = posterior.blocks[rows]
        return Belief(
            posterior.means[rows] @ z,
            self._covariance(blocks, posterior, z),
            posterior.spread,
            self._covariance(blocks, posterior, plain),
        )

    def _covariance(self, blocks: Floats, posterior: _Posterior, z: Floats) -> Floats:
        seen = blocks @ z  # (M, S)
        reach = seen / self._own
        found: Floats = reach @ posterior.shared_covariance @ reach.T + np.diag(seen @ z)
        return found

    def _fitted(self, prior: Mapping[str, float]) -> tuple[dict[str, int], _Posterior]:
        if self._fit is None or any(self._fit[0].get(name) != score for name, score in prior.items()):
            # Models that left the pool still tell how hard tasks are; without a prior of their own they are average.
            level = sum(prior.values()) / len(prior)
            everyone = {name: level for name, rows in self._rows.items() if rows.order}
            everyone |= {} if self._fit is None else self._fit[0]
            everyone |= prior
            self._fit = (everyone, *self._solve(everyone))
        return self._fit[1], self._fit[2]

    def _solve(self, prior: Mapping[str, float]) -> tuple[dict[str, int], _Posterior]:
        names = sorted(prior)
        start = np.zeros((len(names), SIZE))
        start[:, INTERCEPT] = logits(np.array([prior[name] for name in names]))
        parts = [self._evidence(name) for name in names]
        bounds = np.cumsum([0, *(len(part[1]) for part in parts)])
        slices = [slice(bounds[n], bounds[n + 1]) for n in range(len(names)) if bounds[n] < bounds[n + 1]]
        owners = [n for n in range(len(names)) if bounds[n] < bounds[n + 1]]
        x, scores, counts = (np.concatenate([part[column] for part in parts]) for column in range(3))
        later = self._pairs(names)
        offsets, spread = np.zeros(len(x)), PRIOR_SPREAD
        owner = np.repeat(np.arange(len(names)), np.diff(bounds))
        posterior = self._gaussian(start, np.zeros((len(names), SIZE, SIZE)), np.zeros((len(names), SIZE)))
        for step in range(_STEPS if len(x) else 0):
            reached = np.einsum("ns,ns->n", x, posterior.means[owner])
            if later is not None and step >= _STEPS - 2:
                spread, offsets[later.later] = spread_and_offsets(sigmoid(reached), scores, counts, later)
            chance = sigmoid(reached + offsets)
            if step == _STEPS - 2:
                for rows in slices:
                    changed = changed_at(scores[rows] - chance[rows])
                    counts[rows.start : rows.start + changed] = 0.0
            slope = np.maximum(chance * (1 - chance), _FLATTEST)
            masses = counts * slope
            pulls = masses * reached + counts * (scores - chance)
            curvature = np.zeros((len(names), SIZE, SIZE))
            moment = np.zeros((len(names), SIZE))
            weighted = x * masses[:, None]
            for n, rows in zip(owners, slices, strict=True):
                curvature[n] = weighted[rows].T @ x[rows]
                moment[n] = pulls[rows] @ x[rows]
            posterior = self._gaussian(start, curvature, moment)
        return {name: n for n, name in enumerate(names)}, replace(posterior, spread=spread)

    def _pairs(self, names: Sequence[str]) -> Pairs | None:
        """Return which of the newest attempts, model after model, followed which failures; None: none did."""
        keys = [key for name in names if name in self._rows for _, key in self._rows[name].order[-WINDOW:]]
        position = {key: number for number, key in enumerate(keys)}
        found = [
            (number, earlier)
            for key, number in position.items()
            if (failures := self._failures.of(key)) and (earlier := [position[f] for f in failures if f in position])
        ]
        return pairs([earlier for _, earlier in found], [number for number, _ in found]) if found else None

    def _gaussian(self, start: Floats, curvature: Floats, moment: Floats) -> _Posterior:
        """Return the posterior for Gaussian likelihoods of each model's whole weights.

        Args:
            start: (M, S) prior means of the models' own weights.
            curvature: (M, S, S) precisions of the likelihoods.
            moment: (M, S) precisions times means of the likelihoods.
        """
        own = 1 / self._own
        blocks: Floats = np.linalg.inv(curvature + np.diag(own)).astype(np.float64)
        pulls: Floats = np.einsum("mij,mj->mi", blocks, moment + own * start)
        # A model's message to the shared weights, its own weights integrated out.
        precision = np.diag(1 / self._shared + own * len(start)) - own[:, None] * blocks.sum(axis=0) * own
        covariance: Floats = np.linalg.inv(precision).astype(np.float64)
        shared = covariance @ (own * (pulls - start)).sum(axis=0)
        means: Floats = pulls + np.einsum("mij,j->mi", blocks, own * shared)
        return _Posterior(blocks, means, covariance)

    def _evidence(self, model: str) -> tuple[Floats, Floats, Floats]:
        """Return the features, scores and counts of a model's newest attempts."""
        rows = self._rows.get(model)
        if rows is None or not rows.order:
            return np.zeros((0, SIZE)), np.zeros(0), np.zeros(0)
        keys = [key for _, key in rows.order[-WINDOW:]]
        if rows.stacked is None:
            standing = [self._book.get(key) for key in keys]
            scores = np.array([evidence.score for evidence in standing])
            counts = np.array([weight(evidence) for evidence in standing])
            counts *= 2.0 ** (-np.arange(len(keys) - 1, -1, -1) / HALF_LIFE)
            rows.stacked = np.stack([self._features[key] for key in keys]), scores, counts
        return rows.stacked

    def _changed(self, model: str) -> None:
        self._rows[model].stacked = None
        self._fit = None

    def _unplace(self, old: Evidence) -> None:
        self._rows[old.model].stacked = None
        order = self._rows[old.model].order
        order.pop(bisect_left(order, (old.at, old.key)))
        if not order:
            del self._rows[old.model]


def _variances(level: float, dimension: float, text: float) -> Floats:
    variances = np.empty(SIZE)
    variances[INTERCEPT] = level**2
    variances[DIMENSIONS] = dimension**2
    variances[TEXT] = text**2
    return variances
