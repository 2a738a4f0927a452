"""`acrouter bench decide`: how long a decision takes, how it grows with the memory, and what the router needs.

Embeddings of the memory are synthetic: topics with two levels of noise around them, as issues of one repository, of one
subject and of one bug lie around each other. What they stand for does not matter here; how they cluster does, since an
approximate index lives on it, so the spread is printed beside the recall.
"""

import gc
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
from rich.console import Console

from bench.processes import use
from routing import Evidence, ModelPool, ModelSpec, Router
from routing.errors import EncoderError
from routing.evidence_store import EvidenceFeed, save
from routing.index import VectorIndex
from routing.types import Dimension, Encoder, RoutingTask, Vector
from store.database import Database
from store.migrations import upgrade

ENTRIES = 20_000
MANY = 1_000_000
_DIMENSIONS = 384
_DECISIONS = 200
_WARMING = 3
_QUERIES = 200
_EMBEDDED = 20
_TOPICS = 5_000
_PART = 25_000
_START = datetime(2026, 1, 1, tzinfo=UTC)
_WORDS = "The parser raises an unexpected error when the configuration file is empty and the option is set twice. "
_PRICES = (0.1, 0.25, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0)


class _Synthetic:
    """The name and the size of an encoder whose vectors are drawn."""

    name = "synthetic:1"
    threshold = 0.5
    dimensions = _DIMENSIONS

    def encode(self, texts: list[str]) -> Vector:
        return drawn(len(texts), seed=len(texts))


def run(console: Console, *, entries: int = ENTRIES, many: int = MANY) -> dict[str, float]:
    """Measure and return the figures by their names."""
    with console.status(f"starting from a database of {entries:,} entries"):
        startup_s, rss_mb, router = _startup(entries)
    task = _task()
    figures = {"decide.p50_ms": _p50_ms(lambda: router.decide(task), _DECISIONS)}
    figures |= {"decide.startup_s": startup_s, "decide.rss_mb": rss_mb}
    figures["decide.after_observation_p50_ms"] = after_observation_p50_ms(router)
    console.print(", ".join(f"{name} {value:.3g}" for name, value in figures.items()))
    with console.status(f"{many:,} entries"):
        growth, recall, spread = grown(figures["decide.p50_ms"], entries, many)
    figures |= {"decide.growth_1m": growth, "decide.recall_1m": recall}
    console.print(f"Of the synthetic vectors, the tenth neighbour's median similarity is {spread:.2f}.")
    try:
        with console.status("embedding"):
            figures["decide.embedded_p50_ms"] = _embedded_p50_ms()
    except EncoderError as error:
        console.print(f"[yellow]decide.embedded_p50_ms was not measured:[/] {error}")
    return figures


def drawn(count: int, seed: int) -> Vector:
    """Return (count, 384) unit vectors around topics that are the same for every seed."""
    centres = np.random.default_rng(0).normal(size=(_TOPICS, _DIMENSIONS)).astype(np.float32)
    rng = np.random.default_rng(seed)
    rows = np.empty((count, _DIMENSIONS), dtype=np.float32)
    for start in range(0, count, 50_000):
        part = slice(start, min(start + 50_000, count))
        size = part.stop - start
        noise = rng.standard_normal((size, _DIMENSIONS), dtype=np.float32)
        wide = rng.uniform(0.3, 1.0, (size, 1)).astype(np.float32)
        rows[part] = centres[rng.integers(_TOPICS, size=size)] + wide * noise
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows


def _pool() -> ModelPool:
    return ModelPool(
        tuple(
            ModelSpec(name=f"model-{n}", litellm_id=f"x/{n}", input_usd_per_mtok=p, output_usd_per_mtok=4 * p)
            for n, p in enumerate(_PRICES)
        )
    )


def _task() -> RoutingTask:
    return RoutingTask("bench", "synthetic", Dimension.BUG_FIXING, embedding=drawn(1, seed=7)[0])


def _evidence(number: int, vector: Vector | None) -> Evidence:
    return Evidence(
        key=f"attempt:{number}",
        task_key=f"task:{number // 2}",
        dimension=list(Dimension)[number % len(Dimension)],
        model=f"model-{number % len(_PRICES)}",
        score=float(number % 3 == 0),
        cost_usd=0.05,
        final=number % 2 == 0,
        verifier_score=float(number % 4 == 0) if number % 2 == 0 else None,
        at=_START + timedelta(seconds=number),
        embedding=vector,
        encoder=_Synthetic.name if vector is not None else "",
    )


def after_observation_p50_ms(router: Router) -> float:
    """Return a decision's time after the router learnt of an attempt, so that it fits again what it believes."""
    task = _task()
    vectors = drawn(_DECISIONS + _WARMING, seed=8)
    coming = iter([_evidence(number, vector) for number, vector in enumerate(vectors, start=len(router))])
    return _p50_ms(lambda: router.decide(task), _DECISIONS, before=lambda: router.observe(next(coming)))


def _startup(entries: int) -> tuple[float, float, Router]:
    """Return seconds to the first decision of a router that starts from a database, its growth in MB, and itself."""
    encoder: Encoder = _Synthetic()  # type: ignore[assignment]
    with tempfile.TemporaryDirectory(prefix="acrouter-bench-") as folder:
        database = Database(f"sqlite:///{Path(folder) / 'bench.sqlite3'}")
        upgrade(database)
        vectors = drawn(entries, seed=1)
        with database.session() as session:
            for number, vector in enumerate(vectors):
                save(session, _evidence(number, vector), encoder)
        del vectors
        gc.collect()
        before, began = _rss_mb(), time.perf_counter()
        router = Router(_pool(), encoder=encoder, seed=1)
        EvidenceFeed(database).catch_up(router)
        router.decide(_task())
        took = time.perf_counter() - began
        gc.collect()
        grown = _rss_mb() - before
        database.engine.dispose()
    return took, grown, router


def grown(p50_ms: float, few: int, many: int) -> tuple[float, float, float]:
    """Return how much longer a decision takes with many entries, the recall@10 there, and the vectors' spread.

    All of a decision but the search is the same however much is remembered: sums are kept, not gone through. So the
    difference of the two searches is added to the decision with few, `p50_ms`.
    """
    vectors = drawn(many, seed=2)
    queries = drawn(_QUERIES, seed=3)
    small, large = VectorIndex(_DIMENSIONS), VectorIndex(_DIMENSIONS)
    rows = np.arange(many, dtype=np.int64)
    small.add_many(rows[:few], vectors[:few])
    for start in range(0, many, _PART):
        large.add_many(rows[start : start + _PART], vectors[start : start + _PART])
    places = iter(range(1_000_000_000))
    few_ms = _p50_ms(lambda: small.search(queries[next(places) % _QUERIES], 10), _QUERIES)
    many_ms = _p50_ms(lambda: large.search(queries[next(places) % _QUERIES], 10), _QUERIES)
    hits, tenth = 0, []
    for query in queries:
        similarities = vectors @ query
        truth = np.argpartition(-similarities, 10)[:10]
        hits += len(np.intersect1d(truth, large.search(query, 10)[1]))
        tenth.append(float(similarities[truth].min()))
    return (p50_ms - few_ms + many_ms) / p50_ms, hits / (10 * _QUERIES), statistics.median(tenth)


def _embedded_p50_ms() -> float:
    """Return a decision's time with the embedding of a task of 512 tokens or more by `minilm`."""
    from routing.encoders import make_encoder

    router = Router(_pool(), encoder=make_encoder("minilm"), seed=1)
    for number in range(100):
        router.observe(replace(_evidence(number, None), text=f"{_WORDS} Number {number}."))
    numbers = iter(range(1_000_000_000))
    return _p50_ms(lambda: router.decide(router.task("bench", f"{next(numbers)} {_WORDS * 40}")), _EMBEDDED)


def _p50_ms(call: Callable[[], object], times: int, *, before: Callable[[], object] = lambda: None) -> float:
    """Return how long a call takes; what is done before each does not count."""
    for _ in range(_WARMING):
        before()
        call()
    took = []
    for _ in range(times):
        before()
        began = time.perf_counter()
        call()
        took.append(time.perf_counter() - began)
    return 1000 * statistics.median(took)


def _rss_mb() -> float:
    """Memory of this process in MB (Linux)."""
    return use(os.getpid()).resident_kb / 1024
