"""What is drawn of models whose abilities are given: what is published of them, their prices, what attempts cost."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from bench.routing.stream import Floats
from bench.routing.synthetic import spec
from routing.logits import logit, sigmoid
from routing.pool import ModelPool, ModelSpec

TELLING = (0.6, 0.9)
"""Least and greatest correlation of what is published with how good the models are; about what benchmarks of the
shipped profile have among each other (`bench.routing.published`)."""
DEAREST_USD = 1.0
"""Typical cost of an attempt of the dearest model."""


@dataclass(frozen=True)
class ToldPool(ModelPool):
    """A pool of which something is published that no file of the profile has."""

    told: Mapping[str, float] = field(default_factory=dict)
    """Expected scores by name."""

    @classmethod
    def of(cls, specs: tuple[ModelSpec, ...], scores: Floats) -> "ToldPool":
        """Return the pool of models whose expected scores are published."""
        return cls(specs, told=dict(zip((s.name for s in specs), scores.tolist(), strict=True)))

    @cached_property
    def priors(self) -> dict[str, float]:
        return dict(self.told)

    @cached_property
    def published(self) -> frozenset[str]:
        return frozenset(self.told)


def published(rng: np.random.Generator, standings: Floats, telling: tuple[float, float]) -> Floats:
    """Draw the scores that are expected of models by what is published: they show a fraction of the differences.

    Args:
        rng: draws.
        standings: (M,) abilities in standard deviations.
        telling: least and greatest correlation of what is published with them.
    """
    share = rng.uniform(*telling)
    places = share * standings + np.sqrt(1 - share**2) * rng.normal(size=len(standings))
    return sigmoid(logit(0.55) + places * 0.35 * np.exp(rng.normal(0, 0.3)))


def passes(rng: np.random.Generator, resolved: Floats) -> Floats:
    """Draw (T, M) which attempts pass an honest verifier: all that are right, and some that are wrong."""
    return np.maximum(resolved, rng.random(resolved.shape) < rng.uniform(0.2, 0.9))


def prices(
    rng: np.random.Generator, abilities: Floats, spread: float, tasks: int, dearest_usd: float
) -> tuple[tuple[ModelSpec, ...], Floats]:
    """Draw models with prices that follow ability with a good deal of noise, and (T, M) what attempts cost in USD.

    Args:
        rng: draws.
        abilities: (M,) in logits.
        spread: their standard deviation.
        tasks: T.
        dearest_usd: typical cost of an attempt of the dearest model.
    """
    models = len(abilities)
    rank = np.argsort(np.argsort(abilities + rng.normal(0, spread, models)))
    dearest = dearest_usd * np.exp(rng.normal(0, 0.6))
    ratio = np.exp(rng.uniform(np.log(10), np.log(200)))
    mean_usd = dearest * ratio ** (rank / (models - 1) - 1.0)
    usd = mean_usd * rng.lognormal(-0.125, 0.5, (tasks, models))
    specs = tuple(spec(f"m{number}", cost * rng.lognormal(0, 0.5)) for number, cost in enumerate(mean_usd))
    return specs, usd
