"""A player that knows how drawn worlds are drawn: how much better than the router a router could be.

It knows what no router does: the spreads of the models' logits, that nothing else matters than model and kind of task,
and what each model costs on average. So its belief is about right (a Gaussian, by Laplace's approximation), and it
chooses by information-directed sampling (Russo & Van Roy 2014, arXiv 1403.5556), in the form with variances.
"""

from collections.abc import Sequence

import numpy as np

from bench.routing.stream import USD_WEIGHT, Floats, Stream
from bench.routing.tracks import Tried
from routing.logits import logits, sigmoid

_SHARED, _OWN, _BENT = 0.9, 0.5, 0.4
"""Standard deviations of logits, about those of `bench.routing.worlds`: of all models together; of a model, beside what
is published of it; of a model between kinds of task."""
_DRAWS = 256
_STEPS = 4
_LONGEST_STEP = 2.0


class Informed:
    """For one attempt a task: it never goes on."""

    def __init__(self, stream: Stream, seed: int) -> None:
        kinds = sorted({task.dimension for task in stream.tasks})
        self._kinds = [kinds.index(task.dimension) for task in stream.tasks]
        self._stream = stream
        self._losses = USD_WEIGHT * stream.usd.mean(axis=0)
        self._rng = np.random.default_rng([seed, 23])
        models = len(stream.models)
        alike = np.full((models, models), _SHARED**2) + _OWN**2 * np.eye(models)
        covariance = np.kron(np.ones((len(kinds), len(kinds))), alike) + _BENT**2 * np.eye(len(kinds) * models)
        self._precision = np.linalg.inv(covariance)
        self._prior = np.tile(logits(np.array([stream.pool.prior_score(name) for name in stream.models])), len(kinds))
        self._mode, self._covariance = self._prior, covariance
        self._attempts, self._solved = np.zeros(len(self._prior)), np.zeros(len(self._prior))

    def first(self, task: int) -> int:
        models = len(self._losses)
        place = slice(self._kinds[task] * models, (self._kinds[task] + 1) * models)
        root = np.linalg.cholesky(self._covariance[place, place])
        drawn = self._mode[place, None] + root @ self._rng.standard_normal((models, _DRAWS))
        return _directed(sigmoid(drawn).T - self._losses, self._rng)

    def following(self, task: int, tried: Sequence[Tried]) -> int | None:  # noqa: ARG002
        return None

    def reveal(self, task: int, tried: Sequence[Tried]) -> None:
        for attempt in tried:
            place = self._kinds[task] * len(self._losses) + attempt.model
            self._attempts[place] += 1
            self._solved[place] += self._stream.resolved[task, attempt.model]
        for _ in range(_STEPS):
            chance = sigmoid(self._mode)
            pull = self._solved - self._attempts * chance - self._precision @ (self._mode - self._prior)
            self._covariance = np.linalg.inv(self._precision + np.diag(self._attempts * chance * (1 - chance)))
            self._mode = self._mode + np.clip(self._covariance @ pull, -_LONGEST_STEP, _LONGEST_STEP)


def _directed(rewards: Floats, rng: np.random.Generator) -> int:
    """Return a choice by the least squared regret for what it tells of which model is best.

    Args:
        rewards: (draws, M) of the models.
        rng: draws one of the two models that the best distribution gives a share.
    """
    mean, best = rewards.mean(axis=0), rewards.argmax(axis=1)
    told = np.full(len(mean), 1e-12)
    for model in np.unique(best):
        mine = best == model
        told += mine.mean() * np.square(rewards[mine].mean(axis=0) - mean)
    regret = np.maximum(rewards.max(axis=1).mean() - mean, 1e-9)
    shares = np.linspace(0.0, 1.0, 21)[:, None, None]
    mixed = np.square(shares * regret[:, None] + (1 - shares) * regret) / (shares * told[:, None] + (1 - shares) * told)
    share, one, other = np.unravel_index(int(mixed.argmin()), mixed.shape)
    return int(one if rng.random() < shares[share, 0, 0] else other)
