"""The memory's vectors, searched by inner product: exactly up to `EXACT_TO` of them, by inverted lists beyond.

FAISS (arXiv 2401.08281). Exact search grows with the number of vectors; past 100,000 an `IndexIVFFlat` looks only into
the lists whose centres are nearest. HNSW is faster still, and cannot remove what leaves the memory. New vectors gather
in a small exact index and move over many at a time, since finding the list of one costs nearly what a search does.
"""

import math
from typing import Any

import faiss
import numpy as np
from numpy.typing import NDArray

from routing.types import Vector

DIGITS = 5
"""Of a similarity: what differs less is as near. A float32's own noise is a tenth of that."""
_HASHTABLE = 2  # faiss::DirectMap::Hashtable, which the stubs do not know
EXACT_TO = 100_000
RECENT = 10_000
"""Vectors beside the lists, searched exactly, before they move over."""
_LISTS_PER_ROOT = 4
_PROBED = 1 / 48
"""Part of the lists that a search looks into."""
_MOST_WAITING = 1_000
_GROWTH = 4
"""The lists are made anew when there are this many times as many vectors as when they were made."""
_TRAINED_ON = 48
"""Vectors for each list that its centre is found from."""


class VectorIndex:
    """Unit vectors by row number. Not safe to share between threads."""

    def __init__(self, dimensions: int, *, exact_to: int = EXACT_TO, recent: int = RECENT) -> None:
        self._dimensions = dimensions
        self._exact_to = exact_to
        self._most_recent = recent
        self._recent = self._flat()
        self._waiting: dict[int, Vector] = {}
        """By row: FAISS takes many at a time, when somebody searches, far faster than one after the other."""
        self._in_lists: set[int] = set()
        self._lists: faiss.IndexIVFFlat | None = None
        self._made_for = 0

    def __len__(self) -> int:
        return len(self._waiting) + int(self._recent.ntotal) + len(self._in_lists)

    def add(self, row: int, vector: Vector) -> None:
        self._waiting[row] = vector
        if len(self._waiting) == _MOST_WAITING:
            self._take_waiting()

    def add_many(self, rows: NDArray[np.int64], vectors: Vector) -> None:
        """Add n rows with their (n, dimensions) vectors."""
        self._recent.add_with_ids(vectors, rows)
        if self._recent.ntotal > (self._exact_to if self._lists is None else self._most_recent):
            self._move()

    def remove(self, row: int) -> None:
        """Remove a row; one that is not there is no error."""
        if self._waiting.pop(row, None) is not None:
            return
        rows = np.array([row], dtype=np.int64)
        if row in self._in_lists:
            assert self._lists is not None
            self._lists.remove_ids(faiss.IDSelectorArray(rows))  # the only kind that goes by the direct map
            self._in_lists.discard(row)
        else:
            self._recent.remove_ids(faiss.IDSelectorBatch(rows))

    def vector(self, row: int) -> Vector:
        """Return the vector of a row that is there."""
        if row in self._waiting:
            return self._waiting[row]
        index: Any = self._lists if row in self._in_lists else self._recent
        found: Vector = index.reconstruct(row)
        return found

    def search(
        self, query: Vector, limit: int, *, tied_from: float = math.inf
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Return the similarities and the rows of the nearest, the nearest first. Approximate where there are lists.

        There are `limit` of them, or more: those that are as near as the last one, to DIGITS digits, are all there if
        that is `tied_from` or nearer. Which of them to take depends on what the rows stand for.
        """
        # One query is bound by memory bandwidth, and waiting for a second thread on a busy machine cost 10 times the
        # search. The setting belongs to the calling thread, hence here.
        faiss.omp_set_num_threads(1)
        self._take_waiting()
        similarities, rows = self._nearest(query, limit + 1)
        if len(rows) <= limit:
            return similarities, rows
        edge, next_one = np.round(similarities[[limit - 1, limit]], DIGITS).tolist()
        if edge != next_one or edge < tied_from:
            return similarities[:limit], rows[:limit]
        return self._from(query, edge)

    def _nearest(self, query: Vector, limit: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        found = [index.search(query[None, :], min(limit, int(index.ntotal))) for index in self._indexes()]
        similarities, rows = _joined([(similarities[0], rows[0]) for similarities, rows in found])
        return similarities[rows >= 0][:limit], rows[rows >= 0][:limit]

    def _from(self, query: Vector, similarity: float) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Return all rows of a similarity or nearer."""
        found = [index.range_search(query[None, :], similarity - 10.0**-DIGITS) for index in self._indexes()]
        similarities, rows = _joined([(similarities, rows) for _, similarities, rows in found])
        near = np.round(similarities, DIGITS) >= np.float32(similarity)
        return similarities[near], rows[near]

    def _indexes(self) -> list[Any]:
        return [index for index in (self._recent, self._lists) if index is not None and index.ntotal]

    def _take_waiting(self) -> None:
        if self._waiting:
            rows, vectors = np.fromiter(self._waiting, dtype=np.int64), np.stack(list(self._waiting.values()))
            self._waiting.clear()
            self.add_many(rows, vectors)

    def _flat(self) -> faiss.IndexIDMap2:
        return faiss.IndexIDMap2(faiss.IndexFlatIP(self._dimensions))

    def _move(self) -> None:
        """Move the recent vectors to the lists, which are made where there are none or too few."""
        rows = faiss.vector_to_array(self._recent.id_map).copy()
        vectors = np.array(self._recent.index.reconstruct_n(0, self._recent.ntotal))
        if self._lists is None or len(self) > _GROWTH * self._made_for:
            kept = np.fromiter(self._in_lists, dtype=np.int64, count=len(self._in_lists))
            if self._lists is not None and len(kept):
                older = np.stack([self._lists.reconstruct(int(row)) for row in kept])
                rows, vectors = np.concatenate([kept, rows]), np.concatenate([older, vectors])
            self._lists = self._made(vectors)
            self._made_for = len(rows)
        self._lists.add_with_ids(vectors, rows)
        self._in_lists.update(rows.tolist())
        self._recent = self._flat()

    def _made(self, vectors: NDArray[np.float32]) -> faiss.IndexIVFFlat:
        count = max(1, round(_LISTS_PER_ROOT * math.sqrt(len(vectors))))
        quantizer: Any = faiss.IndexFlatIP(self._dimensions)
        lists = faiss.IndexIVFFlat(quantizer, self._dimensions, count, faiss.METRIC_INNER_PRODUCT)
        lists.own_fields = True
        quantizer.this.disown()
        lists.cp.spherical = True
        lists.cp.niter = 8
        lists.cp.max_points_per_centroid = _TRAINED_ON
        lists.cp.min_points_per_centroid = 1
        lists.cp.seed = 1
        lists.nprobe = max(8, round(count * _PROBED))
        lists.set_direct_map_type(_HASHTABLE)
        lists.train(vectors)
        return lists


def _joined(
    parts: list[tuple[NDArray[np.float32], NDArray[np.int64]]],
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Return the similarities and rows of all parts, the nearest first."""
    if not parts:
        return np.empty(0, np.float32), np.empty(0, np.int64)
    similarities, rows = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(-similarities, kind="stable")
    return similarities[order], rows[order]
