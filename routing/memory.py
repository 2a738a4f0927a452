"""The memory: what was tried on similar tasks, found by cosine similarity. A cache of the database in one process."""

import heapq
from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np

from routing.errors import EncoderError
from routing.evidence import EPOCH, precedence
from routing.index import DIGITS, VectorIndex
from routing.types import Encoder, Evidence, Neighbour, Vector
from routing.vectors import check_length, is_empty

CAPACITY = 20_000
NEIGHBOURS = 10
_MICROSECOND = timedelta(microseconds=1)


@dataclass
class _Entry:
    evidence: Evidence
    """Without text and vector: FAISS holds the vector."""
    row: int | None
    """The id in the index; None for an entry that this encoder has not embedded."""


class VectorMemory:
    """Entries by key, those of the newest attempts at capacity, searched by `routing.index`."""

    def __init__(self, encoder: Encoder, capacity: int = CAPACITY) -> None:
        if capacity < 1:
            raise ValueError(f"capacity is {capacity}; the memory holds at least one entry")
        self._encoder = encoder
        self._capacity = capacity
        self._index = VectorIndex(encoder.dimensions)
        self._entries: dict[str, _Entry] = {}
        self._keys: dict[int, str] = {}
        self._ages: list[tuple[datetime, str]] = []
        """When each entry's attempt was made, and its key, the oldest first."""
        self._tasks: defaultdict[str, set[str]] = defaultdict(set)
        """The keys of each task's entries."""
        self._free: list[int] = []
        """Rows that entries have left."""
        self._times = np.zeros(64, dtype=np.int64)
        """Of each row's evidence, in microseconds."""

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: str) -> bool:
        return key in self._entries

    def evidence(self, key: str) -> Evidence | None:
        """Return what stands, without its text and vector."""
        entry = self._entries.get(key)
        return None if entry is None else entry.evidence

    def put(self, evidence: Evidence) -> list[str]:
        """Add or replace an entry, of valid evidence, and return the keys that had to leave for it.

        The attempts that were made first leave, whatever the order of arrival: that of `evidence` itself where all
        others are newer. An entry of another encoder, or without a vector, is kept but never compared.

        Raises:
            EncoderError: the vector has another length than the encoder's, or is not a unit vector.
        """
        vector = self._comparable(evidence)
        stripped = evidence.bare
        entry = self._entries.get(evidence.key)
        if entry is None:
            entry = self._entries[evidence.key] = _Entry(stripped, None)
            self._enter(entry)
        elif precedence(entry.evidence) > precedence(evidence):
            # What is known already is newer, but the vector may be news: another process embedded the text again.
            vector = vector if entry.row is None else None
        else:
            self._leave(entry)
            entry.evidence = stripped
            self._enter(entry)
        if vector is not None:
            self._place(evidence.key, entry, vector)
        if entry.row is not None:
            self._times[entry.row] = (entry.evidence.at - EPOCH) // _MICROSECOND
        evicted = [key for _, key in self._ages[: max(0, len(self._ages) - self._capacity)]]
        for key in evicted:
            self.remove(key)
        return evicted

    def remove(self, key: str) -> bool:
        """Drop an entry and return whether it was there."""
        entry = self._entries.pop(key, None)
        if entry is None:
            return False
        self._leave(entry)
        self._unplace(entry)
        return True

    def neighbours(self, embedding: Vector, limit: int = NEIGHBOURS, *, without_task: str = "") -> Sequence[Neighbour]:
        """Return the most similar entries at the encoder's threshold or above, the nearest first.

        The entries of `without_task` are left out: a task resembles nothing as much as itself.

        Raises:
            EncoderError: `embedding` has another length than the encoder's.
        """
        if not len(self._index):
            return []
        query = self._shaped(embedding)
        found = []
        for similarity, key in self._nearest(query, limit, self._tasks.get(without_task, ()) if without_task else ()):
            evidence = self._entries[key].evidence
            found.append(
                Neighbour(
                    key=evidence.key,
                    similarity=min(similarity, 1.0),
                    model=evidence.model,
                    score=evidence.score,
                    cost_usd=evidence.cost_usd,
                    final=evidence.final,
                    title=evidence.title,
                    link=evidence.link,
                    task_key=evidence.task_key,
                    repository=evidence.repository,
                )
            )
        return found

    def _nearest(self, query: Vector, limit: int, without: Collection[str]) -> Iterator[tuple[float, str]]:
        """Yield the similarity and the key of the nearest; of the equally near the newest, then by key."""
        similarities, rows = self._index.search(query, limit + len(without), tied_from=self._encoder.threshold)
        left_out = [row for key in without if (row := self._entries[key].row) is not None]
        kept = (similarities >= self._encoder.threshold) & ~np.isin(rows, left_out)
        similarities, rows = similarities[kept], rows[kept]
        near, times = np.round(similarities, DIGITS), self._times[rows]
        order = np.lexsort((-times, -near))
        if len(order) > limit:
            # Thousands may be equally near, and few of them of one moment: only these are compared by their keys.
            last = order[limit - 1]
            tied = (near == near[last]) & (times == times[last])
            order = order[: np.flatnonzero(tied[order])[-1] + 1]
        keys = [self._keys[row] for row in rows[order].tolist()]
        candidates = zip(
            (-near[order]).tolist(), (-times[order]).tolist(), keys, similarities[order].tolist(), strict=True
        )
        for *_, key, similarity in heapq.nsmallest(limit, candidates):
            yield similarity, key

    def _comparable(self, evidence: Evidence) -> Vector | None:
        if evidence.embedding is None or evidence.encoder != self._encoder.name:
            return None
        vector = self._shaped(evidence.embedding)
        check_length(vector, f"evidence '{evidence.key}'")
        return None if is_empty(vector) else vector

    def _shaped(self, vector: Vector) -> Vector:
        shaped = np.ascontiguousarray(vector, dtype=np.float32)
        if shaped.shape != (self._encoder.dimensions,):
            raise EncoderError(
                f"an embedding of shape {shaped.shape} does not fit the encoder '{self._encoder.name}', "
                f"which gives {self._encoder.dimensions} dimensions."
            )
        return shaped

    def _place(self, key: str, entry: _Entry, vector: Vector) -> None:
        if entry.row is not None and np.array_equal(self._index.vector(entry.row), vector):
            return
        self._unplace(entry)
        entry.row = self._free.pop() if self._free else len(self._keys)
        if entry.row == len(self._times):
            self._times = np.concatenate([self._times, np.zeros_like(self._times)])
        self._keys[entry.row] = key
        self._index.add(entry.row, vector)

    def _enter(self, entry: _Entry) -> None:
        self._tasks[entry.evidence.task_key].add(entry.evidence.key)
        insort(self._ages, (entry.evidence.made_at, entry.evidence.key))

    def _leave(self, entry: _Entry) -> None:
        self._ages.pop(bisect_left(self._ages, (entry.evidence.made_at, entry.evidence.key)))
        keys = self._tasks[entry.evidence.task_key]
        keys.discard(entry.evidence.key)
        if not keys:
            del self._tasks[entry.evidence.task_key]

    def _unplace(self, entry: _Entry) -> None:
        if entry.row is not None:
            self._index.remove(entry.row)
            del self._keys[entry.row]
            self._free.append(entry.row)
            entry.row = None
