"""Builders of the router's words for tests."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from routing.pool import ModelPool, ModelSpec
from routing.types import Dimension, Evidence, Memory, Neighbour, Pool, RoutingTask, Vector, Vote

START = datetime(2026, 1, 1, tzinfo=UTC)
PRICES: Mapping[str, tuple[float, float]] = {"small": (0.1, 0.4), "medium": (1.0, 4.0), "large": (5.0, 25.0)}


def make_pool(prices: Mapping[str, tuple[float, float]] = PRICES) -> ModelPool:
    """Return a pool of models by (input, output) price in USD per million tokens."""
    return ModelPool(
        tuple(
            ModelSpec(name=name, litellm_id=f"test/{name}", input_usd_per_mtok=price[0], output_usd_per_mtok=price[1])
            for name, price in prices.items()
        )
    )


def make_evidence(
    key: str,
    model: str,
    score: float,
    *,
    task_key: str = "",
    cost_usd: float = 0.05,
    final: bool = False,
    minutes: float = 0.0,
    dimension: Dimension = Dimension.BUG_FIXING,
    **more: Any,
) -> Evidence:
    """Return evidence from `minutes` after the start of the test's time."""
    return Evidence(
        key=key,
        task_key=task_key or key,
        dimension=dimension,
        model=model,
        score=score,
        cost_usd=cost_usd,
        final=final,
        at=START + timedelta(minutes=minutes),
        **more,
    )


def make_task(
    key: str = "task", text: str = "", *, dimension: Dimension = Dimension.BUG_FIXING, **more: Any
) -> RoutingTask:
    return RoutingTask(key=key, text=text, dimension=dimension, **more)


class FixedMemory:
    """A memory with the same neighbours for every task."""

    def __init__(self, neighbours: Sequence[Neighbour] = ()) -> None:
        self._neighbours = neighbours

    def neighbours(self, embedding: Vector, limit: int = 10, *, without_task: str = "") -> Sequence[Neighbour]:
        return self._neighbours[:limit]


class FixedVoter:
    """A voter that always says the same, or always fails."""

    def __init__(self, name: str, shares: Mapping[str, float] | None, **more: Any) -> None:
        self.name = name
        self._shares = shares
        self._more = more

    def vote(self, task: RoutingTask, memory: Memory, pool: Pool) -> Vote:
        if self._shares is None:
            raise RuntimeError("this voter is broken")
        return Vote(self.name, self._shares, **self._more)

    def learn(self, evidence: Evidence) -> None: ...

    def forget(self, key: str) -> None: ...
