"""The memory's index: exact while small, by inverted lists when large, and the same to those who ask."""

import numpy as np
import pytest

from routing.index import VectorIndex
from routing.types import Vector


def clustered(count: int, seed: int, dimensions: int = 32, topics: int = 60) -> Vector:
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(0).normal(size=(topics, dimensions))
    rows = centres[rng.integers(topics, size=count)] + 0.5 * rng.normal(size=(count, dimensions))
    found: Vector = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return found


def nearest(vectors: Vector, query: Vector, gone: set[int] = frozenset()) -> list[int]:  # type: ignore[assignment]
    order = np.argsort(-(vectors @ query)).tolist()
    return [row for row in order if row not in gone][:10]


@pytest.fixture(scope="module")
def vectors() -> Vector:
    return clustered(6000, 1)


def filled(vectors: Vector, exact_to: int) -> VectorIndex:
    index = VectorIndex(vectors.shape[1], exact_to=exact_to, recent=300)
    for row, vector in enumerate(vectors):
        index.add(row, vector)
    return index


def test_a_small_index_is_exact(vectors: Vector) -> None:
    index = filled(vectors[:500], exact_to=1000)

    for query in clustered(20, 2):
        assert index.search(query, 10)[1].tolist() == nearest(vectors[:500], query)


def test_a_large_index_finds_nearly_all_and_says_so_of_each_similarity(vectors: Vector) -> None:
    index = filled(vectors, exact_to=1000)
    hits = 0
    queries = clustered(50, 3)
    for query in queries:
        found = list(zip(*(column.tolist() for column in index.search(query, 10)), strict=True))
        hits += len({row for _, row in found} & set(nearest(vectors, query)))
        assert found == sorted(found, key=lambda pair: -pair[0])
        assert all(similarity == pytest.approx(float(vectors[row] @ query), abs=1e-5) for similarity, row in found)

    assert len(index) == 6000
    assert hits / (10 * len(queries)) >= 0.9


def test_all_that_are_as_near_as_the_last_are_given_if_they_are_near_enough(vectors: Vector) -> None:
    for exact_to in (1000, 100_000):
        index = filled(vectors[:3000], exact_to)
        copies = set(range(10_000, 10_500))
        for row in copies:
            index.add(row, vectors[7])

        similarities, rows = index.search(vectors[7], 10, tied_from=0.9)
        assert set(rows.tolist()) == copies | {7}
        assert similarities == pytest.approx(1.0, abs=1e-5)
        assert len(index.search(vectors[7], 10)[1]) == 10


def test_what_was_removed_is_gone_and_what_is_there_can_be_read(vectors: Vector) -> None:
    index = filled(vectors, exact_to=1000)
    gone = set(range(0, 6000, 2))
    for row in gone:
        index.remove(row)
    index.remove(1_000_000)

    assert len(index) == 3000
    for query in clustered(20, 4):
        rows = set(index.search(query, 10)[1].tolist())
        assert not rows & gone
        assert len(rows & set(nearest(vectors, query, gone))) >= 7
    for row in (1, 2999, 5999):
        assert np.array_equal(index.vector(row), vectors[row])
    index.add(0, vectors[0])
    assert index.search(vectors[0], 1)[1].tolist() == [0]


def test_what_was_added_and_not_yet_searched_is_there_all_the_same(vectors: Vector) -> None:
    index = filled(vectors[:3], exact_to=1000)
    index.remove(1)

    assert len(index) == 2
    assert index.vector(2).tolist() == vectors[2].tolist()
    assert index.search(vectors[1], 10)[1].tolist() == nearest(vectors[:3], vectors[1], gone={1})
