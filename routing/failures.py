"""How much one model's failure says about the next: the spread of the tasks' difficulty, learnt from later attempts.

Only an attempt after another one's failure on the same task tells of it. What was expected of each by the task's
features is known; how much less the later one solved than that gives the spread that is left (`routing.difficulty`).
The likelihood is computed for each spread of a grid, under a documented prior.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from routing.difficulty import NODE_WEIGHTS, curves
from routing.evidence import EvidenceBook
from routing.logits import Floats, logits
from routing.types import Evidence

SPREADS = (0.3, 0.7, 1.0, 1.5, 2.2, 3.2)
PRIOR_SPREAD = 1.5
"""On it one failure of an average model takes a quarter of another's chance."""
_PRIOR_LOGS = np.array([-0.5 * (math.log(spread / PRIOR_SPREAD) / 0.7) ** 2 for spread in SPREADS])
SOLVED = 0.5


class EarlierFailures:
    """For each attempt of a book, the failed attempts at its task before it; keyed and order-free like the voters.

    Before is when the attempts were made: an outcome that comes late makes no attempt a later one.
    A task is counted when somebody asks, not at each of its attempts' changes.
    """

    def __init__(self, book: EvidenceBook) -> None:
        self._book = book
        self._tasks: defaultdict[str, set[str]] = defaultdict(set)
        self._earlier: dict[str, tuple[str, ...]] = {}
        """Of attempts that followed failures."""
        self._stale: set[str] = set()
        """Tasks whose attempts have changed."""

    def put(self, evidence: Evidence, old: Evidence | None) -> None:
        """Take in evidence that stands in the book now, in place of `old`."""
        if old is not None and old.task_key != evidence.task_key:
            self.drop(old)
        self._tasks[evidence.task_key].add(evidence.key)
        self._stale.add(evidence.task_key)

    def drop(self, evidence: Evidence) -> None:
        """Forget an attempt."""
        self._tasks[evidence.task_key].discard(evidence.key)
        self._earlier.pop(evidence.key, None)
        self._stale.add(evidence.task_key)

    def of(self, key: str) -> tuple[str, ...]:
        """Return the keys of the failed attempts before one."""
        self._settle()
        return self._earlier.get(key, ())

    @property
    def any_followed(self) -> bool:
        """Whether any attempt was made after a failure."""
        self._settle()
        return bool(self._earlier)

    def attempts(self, task_key: str) -> list[str]:
        """Return the keys of a task's attempts, sorted."""
        return sorted(self._tasks.get(task_key, ()))

    def _settle(self) -> None:
        while self._stale:
            self._recount(self._stale.pop())

    def _recount(self, task_key: str) -> None:
        if not self._tasks[task_key]:
            del self._tasks[task_key]
            return
        failed: list[tuple[str, str]] = []
        for attempt in sorted(map(self._book.get, self._tasks[task_key]), key=lambda e: (e.made_at, e.key)):
            earlier = tuple(key for key, model in failed if model != attempt.model)
            if earlier:
                self._earlier[attempt.key] = earlier
            else:
                self._earlier.pop(attempt.key, None)
            if attempt.score < SOLVED:
                failed.append((attempt.key, attempt.model))


@dataclass(frozen=True)
class Pairs:
    """Later attempts and the failures before them, as positions in an array of attempts."""

    later: NDArray[np.int64]
    """(J,)"""
    failed: NDArray[np.int64]
    """(P,) all failures, those before the first later attempt first."""
    starts: NDArray[np.int64]
    """(J,) where in `failed` each later attempt's failures begin."""


def pairs(earlier: Sequence[Sequence[int]], later: Sequence[int]) -> Pairs:
    """Return the pairs of `later` attempts, whose failures `earlier` gives; none of these is empty."""
    counts = [len(failures) for failures in earlier]
    starts = np.cumsum([0, *counts])[:-1]
    return Pairs(np.array(later), np.array([f for failures in earlier for f in failures]), starts)


def spread_and_offsets(chances: Floats, scores: Floats, counts: Floats, found: Pairs) -> tuple[float, Floats]:
    """Return the spread that is believed, and the (J,) offsets of the later attempts' logits.

    Args:
        chances: (N,) expected of each attempt by its task's features alone.
        scores: (N,) of the attempts.
        counts: (N,) how much each counts.
        found: which attempts followed which failures.
    """
    by_spread = curves(chances, np.array(SPREADS)[:, None])  # (spreads, N, Q)
    missed = np.log(np.maximum(1 - by_spread, 1e-9))[:, found.failed]
    weights = NODE_WEIGHTS * np.exp(np.add.reduceat(missed, found.starts, axis=1))  # (spreads, J, Q)
    expected = (weights * by_spread[:, found.later]).sum(axis=2) / weights.sum(axis=2)
    expected = np.clip(expected, 0.005, 0.995)
    won, weight = scores[found.later], counts[found.later]
    logs = _PRIOR_LOGS + np.log(expected) @ (weight * won) + np.log1p(-expected) @ (weight * (1 - won))
    believed = np.exp(logs - logs.max())
    believed /= believed.sum()
    return float(believed @ np.array(SPREADS)), logits(believed @ expected) - logits(chances[found.later])
