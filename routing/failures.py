"""How much one model's failure says about the next: failures on one task are correlated.

If model A fails on a task, the task is probably hard, and B's chance falls too. The factor by which it falls is the
score that attempts had after a failure of another model on the same task, over what those models score in general.
"""

from collections import defaultdict
from dataclasses import dataclass

from routing.evidence import EvidenceBook
from routing.tallies import Tallies
from routing.types import Evidence

PRIOR_FACTOR = 0.75
"""Before anything was seen: a quarter of the chance goes with each failure."""
_PRIOR_STRENGTH = 5.0
_SOLVED = 0.5
_UNIT = 1_000_000


@dataclass(frozen=True)
class _Second:
    """An attempt that followed another model's failure on the same task."""

    model: str
    score: int


class FailureCorrelation:
    """Learns the factor from the evidence; keyed and order-free like the voters."""

    def __init__(self) -> None:
        self._book = EvidenceBook()
        self._tallies = Tallies()
        self._tasks: defaultdict[str, set[str]] = defaultdict(set)
        self._seconds: dict[str, list[_Second]] = {}
        self._count: defaultdict[str, int] = defaultdict(int)
        self._score = 0

    def learn(self, evidence: Evidence) -> None:
        stands, old = self._book.put(evidence)
        if not stands:
            return
        self._tallies.put(evidence)
        if old is not None and old.task_key != evidence.task_key:
            self._drop(old)
        self._tasks[evidence.task_key].add(evidence.key)
        self._recount(evidence.task_key)

    def forget(self, key: str) -> None:
        old = self._book.remove(key)
        if old is None:
            return
        self._tallies.remove(key)
        self._drop(old)

    def factor(self) -> float:
        """Return what a model's expected score is multiplied with for each failure before it, in (0, 1]."""
        expected = sum(
            count * self._tallies.of_model(model).mean_score(0.5, 1.0) for model, count in self._count.items() if count
        )
        observed = self._score / _UNIT
        return min(1.0, (observed + PRIOR_FACTOR * _PRIOR_STRENGTH) / (expected + _PRIOR_STRENGTH))

    def _drop(self, evidence: Evidence) -> None:
        attempts = self._tasks[evidence.task_key]
        attempts.discard(evidence.key)
        self._recount(evidence.task_key)
        if not attempts:
            del self._tasks[evidence.task_key]

    def _recount(self, task_key: str) -> None:
        for second in self._seconds.pop(task_key, ()):
            self._count[second.model] -= 1
            self._score -= second.score
        attempts = sorted(map(self._book.get, self._tasks[task_key]), key=lambda e: (e.at, e.key))
        seconds = [
            _Second(attempt.model, round(attempt.score * _UNIT))
            for position, attempt in enumerate(attempts)
            if any(e.model != attempt.model and e.score < _SOLVED for e in attempts[:position])
        ]
        if seconds:
            self._seconds[task_key] = seconds
        for second in seconds:
            self._count[second.model] += 1
            self._score += second.score
