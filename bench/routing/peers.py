"""Peers on equal terms: each ranks the models of a task, tries them in that order, and learns what is revealed.

All see the same features of a task: a constant, its dimension, the length of its text and a fixed random projection of
the shipped encoder's vector. Parameters are the usual ones of the literature, chosen on no stream.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from bench.routing.hindsight import oracle, stand_ins
from bench.routing.stream import USD_WEIGHT, Floats, Stream
from bench.routing.tracks import Tried
from routing.encoders import embedding_text
from routing.encoders.hashing import HashingEncoder
from routing.types import Dimension

_PROJECTED = 16


def vectors(stream: Stream) -> NDArray[np.float32]:
    """Return the shipped encoder's (T, D) unit vectors of the tasks' texts; zeros for a task without words."""
    return HashingEncoder().encode([embedding_text("", task.text) for task in stream.tasks])


def features(stream: Stream, encoded: NDArray[np.float32]) -> Floats:
    """Return (T, F) features: 1, the dimensions that occur, log length, and the projected vector."""
    kinds = [d for d in Dimension if any(task.dimension is d for task in stream.tasks)]
    one_hot = np.array([[float(task.dimension is d) for d in kinds] for task in stream.tasks])
    length = np.log1p([[len(task.text)] for task in stream.tasks]) / 10
    columns = [np.ones((len(stream), 1)), one_hot, length]
    if encoded.any():
        plane = np.random.default_rng(0).normal(size=(encoded.shape[1], _PROJECTED)) / np.sqrt(_PROJECTED)
        columns.append(encoded @ plane)
    return np.hstack(columns)


class Ranking:
    """A player that ranks the models once for each task. Subclasses say how."""

    def __init__(self, stream: Stream, seed: int) -> None:
        self.stream = stream
        self.rng = np.random.default_rng([seed, 17])
        self._ranked: list[int] = []

    def scores(self, task: int) -> Floats:
        """Return (M,) scores, the highest first in line."""
        raise NotImplementedError

    def learn(self, task: int, model: int, reward: float) -> None:
        """Take in the reward of one attempt."""

    def first(self, task: int) -> int:
        scores = np.where(self.stream.allowed[task], self.scores(task), -np.inf)
        self._ranked = [int(m) for m in np.argsort(-scores, kind="stable") if self.stream.allowed[task, m]]
        return self._ranked[0]

    def following(self, task: int, tried: Sequence[Tried]) -> int | None:  # noqa: ARG002
        return self._ranked[len(tried)] if len(tried) < len(self._ranked) else None

    def reveal(self, task: int, tried: Sequence[Tried]) -> None:
        for attempt in tried:
            model = attempt.model
            self.learn(task, model, self.stream.resolved[task, model] - USD_WEIGHT * self.stream.usd[task, model])


class Random(Ranking):
    """Every order is as likely."""

    def scores(self, task: int) -> Floats:  # noqa: ARG002
        return self.rng.random(len(self.stream.models))


class Chain:
    """The same models in the same order on every task, until the verifier is content."""

    def __init__(self, stream: Stream, chain: Sequence[int]) -> None:
        self._stream = stream
        self._chain = tuple(chain)
        self._stand_ins = stand_ins(stream)

    def first(self, task: int) -> int:
        return self._left(task)[0]

    def following(self, task: int, tried: Sequence[Tried]) -> int | None:
        left = self._left(task)
        return left[len(tried)] if len(tried) < len(left) else None

    def reveal(self, task: int, tried: Sequence[Tried]) -> None:
        """Learn nothing."""

    def _left(self, task: int) -> list[int]:
        allowed = self._stream.allowed[task]
        # Where none of its models may be used here, the cheapest that may be stands in.
        return [m for m in self._chain if allowed[m]] or [int(self._stand_ins[task])]


class Fixed:
    """A model for each task that was chosen beforehand: the oracle, or a published voter."""

    def __init__(self, chosen: NDArray[np.int64]) -> None:
        self._chosen = chosen

    def first(self, task: int) -> int:
        return int(self._chosen[task])

    def following(self, task: int, tried: Sequence[Tried]) -> int | None:  # noqa: ARG002
        return None

    def reveal(self, task: int, tried: Sequence[Tried]) -> None:
        """Learn nothing."""


class EpsilonGreedy(Ranking):
    """Sutton & Barto, chapter 2: the best mean reward of the dimension so far; one task in ten at random."""

    epsilon = 0.1

    def __init__(self, stream: Stream, seed: int) -> None:
        super().__init__(stream, seed)
        kinds = list(Dimension)
        self._kind = [kinds.index(task.dimension) for task in stream.tasks]
        self._sums = np.zeros((len(kinds), len(stream.models)))
        self._counts = np.zeros_like(self._sums)

    def scores(self, task: int) -> Floats:
        kind = self._kind[task]
        jitter = 1e-6 * self.rng.random(len(self.stream.models))
        if self.rng.random() < self.epsilon:
            return self.rng.random(len(self.stream.models))
        means: Floats = np.where(
            self._counts[kind] > 0, self._sums[kind] / np.maximum(self._counts[kind], 1), 1.0
        )  # an untried model counts as the best
        return means + jitter

    def learn(self, task: int, model: int, reward: float) -> None:
        self._sums[self._kind[task], model] += reward
        self._counts[self._kind[task], model] += 1


@dataclass
class _Ridge:
    """Ridge regression for each model, kept as its inverse (Sherman-Morrison)."""

    models: int
    size: int
    inverse: Floats = field(init=False)
    moment: Floats = field(init=False)

    def __post_init__(self) -> None:
        self.inverse = np.stack([np.eye(self.size)] * self.models)
        self.moment = np.zeros((self.models, self.size))

    def learn(self, model: int, x: Floats, reward: float) -> None:
        step = self.inverse[model] @ x
        self.inverse[model] -= np.outer(step, step) / (1 + x @ step)
        self.moment[model] += reward * x

    def mean(self) -> Floats:
        means: Floats = np.einsum("mij,mj->mi", self.inverse, self.moment)
        return means


class LinUcb(Ranking):
    """Li et al. 2010 (arXiv 1003.0146): disjoint linear models, mean plus alpha standard errors."""

    alpha = 1.0

    def __init__(self, stream: Stream, seed: int, x: Floats) -> None:
        super().__init__(stream, seed)
        self._x = x
        self._ridge = _Ridge(len(stream.models), x.shape[1])

    def scores(self, task: int) -> Floats:
        x = self._x[task]
        widths = np.sqrt(np.einsum("i,mij,j->m", x, self._ridge.inverse, x))
        scores: Floats = self._ridge.mean() @ x + self.alpha * widths
        return scores

    def learn(self, task: int, model: int, reward: float) -> None:
        self._ridge.learn(model, self._x[task], reward)


class LinTs(LinUcb):
    """Agrawal & Goyal 2013 (arXiv 1209.3352): weights drawn from their posterior, with v = 0.5."""

    spread = 0.5

    def scores(self, task: int) -> Floats:
        means = self._ridge.mean()
        roots = np.linalg.cholesky(self._ridge.inverse)
        noise = self.rng.standard_normal(means.shape)
        scores: Floats = (means + self.spread * np.einsum("mij,mj->mi", roots, noise)) @ self._x[task]
        return scores


class Knn(Ranking):
    """kNN retrieval: the mean reward of each model among the ten most similar tasks that it was tried on."""

    neighbours = 10

    def __init__(self, stream: Stream, seed: int, encoded: NDArray[np.float32]) -> None:
        super().__init__(stream, seed)
        self._similar = encoded @ encoded.T
        if not encoded.any():
            kinds = np.array([str(task.dimension) for task in stream.tasks])
            self._similar = (kinds[:, None] == kinds[None, :]).astype(np.float32)
        self._seen: list[tuple[int, int, float]] = []

    def scores(self, task: int) -> Floats:
        jitter = 1e-6 * self.rng.random(len(self.stream.models))
        if not self._seen:
            return jitter
        tasks, models, rewards = map(np.array, zip(*self._seen, strict=True))
        nearest = np.argsort(-self._similar[task, tasks], kind="stable")[: self.neighbours]
        scores = jitter + 0.5  # a model that no neighbour tells of is worth a coin's toss
        for model in set(models[nearest].tolist()):
            scores[model] = rewards[nearest][models[nearest] == model].mean()
        return scores

    def learn(self, task: int, model: int, reward: float) -> None:
        self._seen.append((task, model, reward))


class Exp4(Ranking):
    """EXP4 over published voters (Auer et al. 2002), rewards estimated by propensity; exploration 5%."""

    gamma = 0.05

    def __init__(self, stream: Stream, seed: int, votes: Mapping[str, NDArray[np.int64]]) -> None:
        super().__init__(stream, seed)
        self._votes = np.stack(list(votes.values()))
        self._gains = np.zeros(len(self._votes))
        self._chances: dict[int, Floats] = {}
        models = len(stream.models)
        self._rate = np.sqrt(2 * np.log(len(self._votes)) / (max(len(stream), 1) * models))

    def _weights(self) -> Floats:
        raw = np.exp(self._rate * (self._gains - self._gains.max()))
        weights: Floats = raw / raw.sum()
        return weights

    def scores(self, task: int) -> Floats:
        models = len(self.stream.models)
        named = np.bincount(self._votes[:, task], weights=self._weights(), minlength=models).astype(np.float64)
        chances: Floats = (1 - self.gamma) * named + self.gamma / models
        self._chances[task] = chances
        scores = chances.copy()
        scores[self.rng.choice(models, p=chances / chances.sum())] += 1.0
        return scores

    def learn(self, task: int, model: int, reward: float) -> None:
        estimate = reward / self._chances[task][model]
        self._gains += estimate * (self._votes[:, task] == model)


class Hedge(Exp4):
    """Hedge with what was seen alone: voters that named the tried model share its reward, less what is usual."""

    def __init__(self, stream: Stream, seed: int, votes: Mapping[str, NDArray[np.int64]]) -> None:
        super().__init__(stream, seed, votes)
        self._rate = float(np.sqrt(8 * np.log(len(self._votes)) / max(len(stream), 1)))
        self._sum, self._count = 0.0, 0

    def scores(self, task: int) -> Floats:
        models = len(self.stream.models)
        return np.bincount(self._votes[:, task], weights=self._weights(), minlength=models).astype(np.float64)

    def learn(self, task: int, model: int, reward: float) -> None:
        usual = self._sum / self._count if self._count else reward
        self._sum, self._count = self._sum + reward, self._count + 1
        self._gains += (reward - usual) * (self._votes[:, task] == model)


def oracle_player(stream: Stream) -> Fixed:
    """Return the player that knows all outcomes."""
    return Fixed(oracle(stream))
