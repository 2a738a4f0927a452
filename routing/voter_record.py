"""How much each voter's word weighs: by its record, on each dimension.

A multiplicative update (Littlestone & Warmuth 1994; Cesa-Bianchi & Lugosi 2006, chapter 2) on squared errors: when an
attempt's score is known, a voter that had been nearer to it than the voters were on average gains, one that had been
farther loses. A weight stays within FLOOR and CEILING times the configured one, so that a voter that was wrong for long
is heard again when it is right. What was learnt on other dimensions counts a third.
"""

import math
from collections import defaultdict
from collections.abc import Mapping

from routing.evidence import EvidenceBook, weight
from routing.types import Evidence

RATE = 0.5
FLOOR, CEILING = 0.25, 4.0
ELSEWHERE = 1 / 3
_UNIT = 1_000_000


class VoterRecord:
    """Keeps sums of gains; keyed and order-free like the voters."""

    def __init__(self) -> None:
        self._book = EvidenceBook()
        self._gains: defaultdict[tuple[str, str], int] = defaultdict(int)
        """By dimension and voter, in whole millionths, which add up to the same in any order."""
        self._overall: defaultdict[str, int] = defaultdict(int)

    def learn(self, evidence: Evidence) -> None:
        self._book.count(evidence, self._add)

    def forget(self, key: str) -> None:
        self._book.uncount(key, self._add)

    def weights(self, configured: Mapping[str, float], dimension: str) -> dict[str, float]:
        """Return each voter's weight on a dimension."""
        found = {}
        for voter, start in configured.items():
            here = self._gains.get((str(dimension), voter), 0)
            gain = (here + ELSEWHERE * (self._overall.get(voter, 0) - here)) / _UNIT
            found[voter] = start * min(max(math.exp(min(max(RATE * gain, -50.0), 50.0)), FLOOR), CEILING)
        return found

    def _add(self, evidence: Evidence, sign: int) -> None:
        if len(evidence.views) < 2:
            return
        errors = {voter: (view - evidence.score) ** 2 for voter, view in evidence.views.items()}
        usual = math.fsum(errors.values()) / len(errors)
        for voter, error in errors.items():
            gain = sign * round(weight(evidence) * (usual - error) * _UNIT)
            self._gains[str(evidence.dimension), voter] += gain
            self._overall[voter] += gain
