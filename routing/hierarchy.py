"""Bayesian logistic regression with weights shared by all models and weights of each model's own.

The logit of model m's chance on a task with features z is z.(w + v_m). The shared weights w say what holds for all; a
model's own v_m, which are believed to be smaller, what is different about it. Both have Gaussian priors, v_m around
what was known of m beforehand. The posterior is approximated by a Gaussian at its mode, found by Newton's steps
(Laplace; Bishop 2006, section 4.4); given the mode's curvature the shared weights are integrated out exactly (Lindley &
Smith 1972; the hybrid of Li et al. 2010, arXiv 1003.0146, section 3.2).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from routing.contexts import DIMENSIONS, INTERCEPT, SIZE, TEXT
from routing.logits import Floats, sigmoid

STEPS = 4
"""Newton's method doubles the exact digits with each step."""
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
        """Return the (S,) variances of the shared weights."""
        return _variances(self.shared_level, self.shared_dimension, self.shared_text)

    def own(self) -> Floats:
        """Return the (S,) variances of a model's own weights."""
        return _variances(self.own_level, self.own_dimension, self.own_text)


DEFAULT_SPREADS = Spreads()


@dataclass(frozen=True)
class Rows:
    """The attempts of M models, model after model."""

    x: Floats
    """(N, S) features."""
    scores: Floats
    """(N,) in [0, 1]."""
    counts: Floats
    """(N,): how much each attempt counts, in [0, 1]."""
    bounds: NDArray[np.int64]
    """(M + 1,): model m's attempts are those from bounds[m] up to bounds[m + 1]."""

    @classmethod
    def stacked(cls, parts: Sequence[tuple[Floats, Floats, Floats]]) -> "Rows":
        """Return the rows of models given as (features, scores, counts), each."""
        x, scores, counts = (np.concatenate([part[column] for part in parts]) for column in range(3))
        return cls(x, scores, counts, np.cumsum([0, *(len(part[1]) for part in parts)]))

    @cached_property
    def owner(self) -> NDArray[np.int64]:
        """Whose each of the N attempts is."""
        return np.repeat(np.arange(len(self.bounds) - 1), np.diff(self.bounds))

    def slices(self) -> list[tuple[int, slice]]:
        """Return (model, its attempts) for each model that has any."""
        return [(n, slice(a, b)) for n, (a, b) in enumerate(zip(self.bounds, self.bounds[1:], strict=False)) if a < b]


@dataclass(frozen=True)
class Posterior:
    """Of the weights: given the shared ones each model's own block, and the shared ones."""

    blocks: Floats
    """(M, S, S)"""
    means: Floats
    """(M, S): of the whole weights w + v_m."""
    shared_covariance: Floats
    """(S, S)"""
    own: Floats
    """(S,): prior variances of a model's own weights."""

    def reached(self, rows: Rows) -> Floats:
        """Return the (N,) logits of attempts."""
        found: Floats = np.einsum("ns,ns->n", rows.x, self.means[rows.owner])
        return found

    def covariance(self, models: Sequence[int], z: Floats) -> Floats:
        """Return the (len(models), len(models)) covariance of the models' logits at features z (S,)."""
        seen = self.blocks[models] @ z
        reach = seen / self.own
        found: Floats = reach @ self.shared_covariance @ reach.T + np.diag(seen @ z)
        return found

    def scores(self, models: Sequence[int], z: Floats) -> Floats:
        """Return the models' expected scores at features z (S,)."""
        return expected(self.means[models] @ z, np.diag(self.covariance(models, z)))


@dataclass(frozen=True)
class Prior:
    """What is believed of the weights of M models before any attempt."""

    start: Floats
    """(M, S): means of the models' own weights."""
    shared: Floats
    """(S,) variances of the shared weights."""
    own: Floats
    """(S,) variances of a model's own."""

    @classmethod
    def of(cls, levels: Floats, shared: Floats, own: Floats) -> "Prior":
        """Return the prior of models whose logits are expected at `levels` (M,) on any task."""
        start = np.zeros((len(levels), SIZE))
        start[:, INTERCEPT] = levels
        return cls(start, shared, own)

    def posterior(self) -> Posterior:
        """Return the posterior of no attempt."""
        models, size = self.start.shape
        return self._given(np.zeros((models, size, size)), np.zeros((models, size)))

    def step(self, rows: Rows, reached: Floats, chance: Floats) -> Posterior:
        """Return the posterior after one more of Newton's steps.

        Args:
            rows: the attempts.
            reached: (N,) their logits by the posterior of the step before.
            chance: (N,) their chances by it, with whatever else is known of each.
        """
        slope = np.maximum(chance * (1 - chance), _FLATTEST)
        masses = rows.counts * slope
        pulls = masses * reached + rows.counts * (rows.scores - chance)
        models, size = self.start.shape
        curvature = np.zeros((models, size, size))
        moment = np.zeros((models, size))
        weighted = rows.x * masses[:, None]
        for n, mine in rows.slices():
            curvature[n] = weighted[mine].T @ rows.x[mine]
            moment[n] = pulls[mine] @ rows.x[mine]
        return self._given(curvature, moment)

    def _given(self, curvature: Floats, moment: Floats) -> Posterior:
        """Return the posterior for Gaussian likelihoods of each model's whole weights.

        Args:
            curvature: (M, S, S) precisions of the likelihoods.
            moment: (M, S) precisions times means of the likelihoods.
        """
        own = 1 / self.own
        blocks: Floats = np.linalg.inv(curvature + np.diag(own)).astype(np.float64)
        pulls: Floats = np.einsum("mij,mj->mi", blocks, moment + own * self.start)
        # A model's message to the shared weights, its own weights integrated out.
        precision = np.diag(1 / self.shared + own * len(self.start)) - own[:, None] * blocks.sum(axis=0) * own
        covariance: Floats = np.linalg.inv(precision).astype(np.float64)
        shared = covariance @ (own * (pulls - self.start)).sum(axis=0)
        means: Floats = pulls + np.einsum("mij,j->mi", blocks, own * shared)
        return Posterior(blocks, means, covariance, self.own)


def expected(means: Floats, variances: Floats) -> Floats:
    """Return the expected logistic of Gaussians (MacKay 1992)."""
    return sigmoid(means / np.sqrt(1 + math.pi * variances / 8))


def _variances(level: float, dimension: float, text: float) -> Floats:
    variances = np.empty(SIZE)
    variances[INTERCEPT] = level**2
    variances[DIMENSIONS] = dimension**2
    variances[TEXT] = text**2
    return variances
