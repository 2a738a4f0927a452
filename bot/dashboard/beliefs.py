"""What the router believes of each model and how sure it is, from its memory."""

from dataclasses import dataclass

import numpy as np
from sqlalchemy import select
from sqlmodel import Session, col, func

from routing.evidence import PROVISIONAL_WEIGHT
from store.tables import MemoryEntry

_GRID = np.linspace(0.0005, 0.9995, 1000)


@dataclass(frozen=True)
class Belief:
    """Expected success of one model in one dimension: the mean of a Beta posterior and its 95 % interval."""

    attempts: int
    final: int
    """Of them by the outcome of a PR; the others by the verifier."""
    mean: float
    low: float
    high: float
    usd: float
    """Mean cost of an attempt."""


def beliefs(session: Session) -> dict[str, dict[str, Belief]]:
    """Return beliefs by dimension and model. One query, answered from an index."""
    rows = session.execute(
        select(
            col(MemoryEntry.model),
            col(MemoryEntry.dimension),
            col(MemoryEntry.final),
            func.count(),
            func.sum(col(MemoryEntry.score)),
            func.sum(col(MemoryEntry.cost_usd)),
        ).group_by(col(MemoryEntry.model), col(MemoryEntry.dimension), col(MemoryEntry.final))
    ).all()
    sums: dict[tuple[str, str], list[tuple[bool, int, float, float]]] = {}
    for model, dimension, final, count, score, usd in rows:
        sums.setdefault((dimension, model), []).append((bool(final), int(count), float(score), float(usd)))
    found: dict[str, dict[str, Belief]] = {}
    for (dimension, model), parts in sorted(sums.items()):
        found.setdefault(dimension or "unknown", {})[model] = _belief(parts)
    return found


def posterior(weight: float, score_sum: float) -> tuple[float, float, float]:
    """Return mean and 95 % interval of Beta(1 + score_sum, 1 + weight - score_sum): a flat prior, seen cases added."""
    alpha, beta = 1.0 + score_sum, 1.0 + max(0.0, weight - score_sum)
    logs = (alpha - 1) * np.log(_GRID) + (beta - 1) * np.log1p(-_GRID)
    mass = np.cumsum(np.exp(logs - logs.max()))
    mass /= mass[-1]
    low, high = np.interp([0.025, 0.975], mass, _GRID)
    return alpha / (alpha + beta), float(low), float(high)


def _belief(parts: list[tuple[bool, int, float, float]]) -> Belief:
    # A verifier's score counts as much here as it does in the router.
    weights = [(1.0 if final else PROVISIONAL_WEIGHT, count, score) for final, count, score, _ in parts]
    attempts = sum(count for _, count, _, _ in parts)
    mean, low, high = posterior(sum(w * n for w, n, _ in weights), sum(w * s for w, _, s in weights))
    return Belief(
        attempts=attempts,
        final=sum(count for final, count, _, _ in parts if final),
        mean=mean,
        low=low,
        high=high,
        usd=sum(usd for _, _, _, usd in parts) / attempts,
    )
