"""Sums over the standing evidence that are exact, so that no order of arrival can be seen in them."""

from collections import defaultdict
from collections.abc import Hashable
from dataclasses import dataclass

from routing.evidence import EvidenceBook, weight
from routing.types import Evidence

_UNIT = 1_000_000


@dataclass
class _Sums:
    """Whole millionths: integers add up to the same in any order."""

    attempts: int = 0
    weight: int = 0
    score: int = 0


@dataclass(frozen=True)
class Tally:
    """What was seen of one group. `weight` counts attempts by how sure their scores are."""

    attempts: int
    weight: float
    score_sum: float

    def mean_score(self, prior: float, strength: float) -> float:
        """Return the smoothed mean score, the prior counting as `strength` attempts."""
        return (self.score_sum + prior * strength) / (self.weight + strength)


_NOTHING = Tally(0, 0.0, 0.0)


class Tallies:
    """Counts and scores by model and by (dimension, model)."""

    def __init__(self) -> None:
        self._book = EvidenceBook()
        self._sums: defaultdict[Hashable, _Sums] = defaultdict(_Sums)

    def put(self, evidence: Evidence) -> None:
        """Take in evidence by its key."""
        self._book.count(evidence, self._add)

    def remove(self, key: str) -> None:
        """Forget a key."""
        self._book.uncount(key, self._add)

    def of_model(self, model: str) -> Tally:
        return self._tally(model)

    def of(self, dimension: str, model: str) -> Tally:
        return self._tally((str(dimension), model))

    def _add(self, evidence: Evidence, sign: int) -> None:
        counts = weight(evidence)
        amount = sign * round(counts * _UNIT)
        score = sign * round(counts * evidence.score * _UNIT)
        for group in (evidence.model, (str(evidence.dimension), evidence.model)):
            sums = self._sums[group]
            sums.attempts += sign
            sums.weight += amount
            sums.score += score

    def _tally(self, group: Hashable) -> Tally:
        sums = self._sums.get(group)
        if sums is None or not sums.attempts:
            return _NOTHING
        return Tally(sums.attempts, sums.weight / _UNIT, sums.score / _UNIT)
