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
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from routing.contexts import DIMENSIONS, ELSEWHERE, INTERCEPT, PUBLISHED_ABOUT, SIZE, TEXT
from routing.logits import Floats, sigmoid
from routing.types import Dimension

STEPS = 4
"""Newton's method doubles the exact digits with each step."""
NO_SAY = 1e-6
"""Variance of a weight that has no say."""
_FLATTEST = 0.05
"""Least slope of the logistic that a step is divided by: surprises must not throw it off."""


@dataclass(frozen=True)
class Spreads:
    """Standard deviations of the weights before any evidence, in logits.

    Those of dimensions follow the published ID statistics of CodeRouterBench, where the best model of one kind of task
    is often among the worst of another; the others were chosen on drawn streams (`bench.routing.synthetic`).

    What is published of a model is about repairing real repositories, and tells its level there about as well as the
    benchmarks of that kind foretell each other (0.2 to 0.3: `bench.routing.published`). Elsewhere its level is as open
    as that of a model of which nothing is published.
    """

    shared_level: float = 1.0
    shared_dimension: float = 0.8
    shared_text: float = 1.0
    own_level: float = 0.7
    own_dimension: float = 0.8
    own_text: float = 0.2
    published_level: float = 0.3
    published_dimension: float = 0.1
    """Of the one dimension that published scores are about."""

    def shared(self) -> Floats:
        """Return the (S,) variances of the shared weights."""
        return _variances(self.shared_level, self.shared_dimension, self.shared_text)

    def own(self, *, published: bool = False) -> Floats:
        """Return the (S,) variances of a model's own weights, for one of which something is published or nothing."""
        variances = _variances(self.own_level, self.own_dimension, self.own_text)
        if published:
            variances[INTERCEPT] = self.published_level**2
            variances[ELSEWHERE] = self.own_level**2 - self.published_level**2
            variances[DIMENSIONS][list(Dimension).index(PUBLISHED_ABOUT)] = self.published_dimension**2
        return variances


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

    @cached_property
    def active(self) -> NDArray[np.int64]:
        """The features that any attempt has. Of the others' weights nothing was learnt."""
        return np.flatnonzero(self.x.any(axis=0))

    @cached_property
    def compact(self) -> Floats:
        """(N, A) features, the active ones alone."""
        return np.ascontiguousarray(self.x[:, self.active])

    @cached_property
    def slices(self) -> Sequence[tuple[int, slice]]:
        """(model, its attempts) for each model that has any."""
        bounds = self.bounds.tolist()
        return [(n, slice(a, b)) for n, (a, b) in enumerate(pairwise(bounds)) if a < b]


@dataclass(frozen=True)
class Posterior:
    """Of the weights: given the shared ones each model's own block, and the shared ones.

    The priors are independent, so the weights of features that no attempt has stay as they were believed.
    """

    prior: "Prior"
    means: Floats
    """(M, S): of the whole weights w + v_m."""
    active: NDArray[np.int64]
    """(A,): the features that attempts have."""
    blocks: Floats
    """(M, A, A)"""
    shared_covariance: Floats
    """(A, A)"""

    def reached(self, rows: Rows) -> Floats:
        """Return the (N,) logits of attempts."""
        found = np.empty(len(rows.scores))
        means = self.means[:, rows.active]
        for n, mine in rows.slices:
            found[mine] = rows.compact[mine] @ means[n]
        return found

    def covariance(self, models: Sequence[int], z: Floats) -> Floats:
        """Return the (len(models), len(models)) covariance of the models' logits at features z (S,)."""
        known, others = z[self.active], np.square(z)
        others[self.active] = 0.0
        own = self.prior.own[models]
        seen = self.blocks[models] @ known
        reach = seen / own[:, self.active]
        found: Floats = reach @ self.shared_covariance @ reach.T + others @ self.prior.shared
        places = np.arange(len(models))
        found[places, places] += seen @ known + own @ others
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
    """(M, S) variances of the models' own."""

    @classmethod
    def of(cls, levels: Floats, shared: Floats, own: Floats) -> "Prior":
        """Return the prior of models whose logits are expected at `levels` (M,) on any task.

        `own`: (S,) variances that hold for all of them, or (M, S).
        """
        start = np.zeros((len(levels), SIZE))
        start[:, INTERCEPT] = levels
        return cls(start, shared, np.broadcast_to(own, start.shape))

    def posterior(self) -> Posterior:
        """Return the posterior of no attempt."""
        models = len(self.start)
        return Posterior(self, self.start, np.arange(0), np.zeros((models, 0, 0)), np.zeros((0, 0)))

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
        models, x = len(self.start), rows.compact
        curvature = np.zeros((models, x.shape[1], x.shape[1]))
        moment = np.zeros((models, x.shape[1]))
        weighted = x * masses[:, None]
        for n, mine in rows.slices:
            curvature[n] = weighted[mine].T @ x[mine]
            moment[n] = pulls[mine] @ x[mine]
        return self._given(curvature, moment, rows.active)

    def _given(self, curvature: Floats, moment: Floats, active: NDArray[np.int64]) -> Posterior:
        """Return the posterior for Gaussian likelihoods of each model's whole weights.

        Args:
            curvature: (M, A, A) precisions of the likelihoods.
            moment: (M, A) precisions times means of the likelihoods.
            active: (A,) features that these are about.
        """
        own, start = 1 / self.own[:, active], self.start[:, active]
        diagonal = np.arange(len(active))
        curvature[:, diagonal, diagonal] += own
        blocks: Floats = np.linalg.inv(curvature).astype(np.float64, copy=False)
        pulls = (blocks @ (moment + own * start)[:, :, None])[:, :, 0]
        # A model's message to the shared weights, its own weights integrated out.
        precision = -(own[:, :, None] * blocks * own[:, None, :]).sum(axis=0)
        precision[diagonal, diagonal] += 1 / self.shared[active] + own.sum(axis=0)
        covariance: Floats = np.linalg.inv(precision).astype(np.float64, copy=False)
        shared = covariance @ (own * (pulls - start)).sum(axis=0)
        means = self.start.copy()
        means[:, active] = pulls + (blocks @ (own * shared)[:, :, None])[:, :, 0]
        return Posterior(self, means, active, blocks, covariance)


def expected(means: Floats, variances: Floats) -> Floats:
    """Return the expected logistic of Gaussians (MacKay 1992)."""
    return sigmoid(means / np.sqrt(1 + math.pi * variances / 8))


def _variances(level: float, dimension: float, text: float) -> Floats:
    variances = np.empty(SIZE)
    variances[INTERCEPT] = level**2
    variances[DIMENSIONS] = dimension**2
    variances[ELSEWHERE] = NO_SAY
    variances[TEXT] = text**2
    return variances
