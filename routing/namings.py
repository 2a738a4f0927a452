"""What it is worth that a voter names a model: learnt for voters that give shares and no expected scores.

Such a voter says whom it would take and not how good that is. What its word is worth is a regression: how much better
than the others believed did an attempt turn out, by how much of each voter's share the model had over an even split?
Joint, since voters copy each other; Gaussian, with a step for all dimensions and one for each around it; before
anything was seen, all such voters together add ALL_TOGETHER to a model that all of them name for certain.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from routing.evidence import EvidenceBook
from routing.logits import Floats
from routing.types import Evidence

ALL_TOGETHER = 0.3
_SPREAD, _SPREAD_OF_DIMENSIONS = 0.15, 0.1
"""Standard deviations of a step, and of a dimension's step around it, in units of score."""
_NOISE = 0.2
_OVERALL = ""
_SHARE_UNIT, _SCORE_UNIT = 1024, 1_000_000


class NamingRecord:
    """Keeps sums of products in whole units, which add up to the same in any order; keyed like the voters."""

    def __init__(self) -> None:
        self._book = EvidenceBook()
        self._products: defaultdict[str, defaultdict[tuple[str, str], int]] = defaultdict(lambda: defaultdict(int))
        self._moments: defaultdict[str, defaultdict[str, int]] = defaultdict(lambda: defaultdict(int))
        self._steps: dict[str, dict[str, float]] = {}

    def learn(self, evidence: Evidence) -> None:
        self._book.count(evidence, self._add)

    def forget(self, key: str) -> None:
        self._book.uncount(key, self._add)

    def recorded(self, key: str) -> Mapping[str, float]:
        """Return what stands recorded of who named the model of an attempt."""
        return self._book.get(key).namings if key in self._book else {}

    def steps(self, configured: Mapping[str, float], dimension: str) -> dict[str, float]:
        """Return what each voter's share over an even split adds to a score on a dimension."""
        names = sorted(configured)
        total = sum(configured.values())
        if not names or total <= 0:
            return dict.fromkeys(names, 0.0)
        if str(dimension) not in self._steps:
            prior: Floats = ALL_TOGETHER * np.array([configured[name] for name in names], dtype=np.float64) / total
            overall = self._posterior(_OVERALL, names, prior, _SPREAD)
            here: Floats = self._posterior(str(dimension), names, overall, _SPREAD_OF_DIMENSIONS)
            self._steps[str(dimension)] = dict(zip(names, here.tolist(), strict=True))
        return self._steps[str(dimension)]

    def _posterior(self, group: str, names: Sequence[str], prior: Floats, spread: float) -> Floats:
        products, moments = self._products[group], self._moments[group]
        curvature: Floats = np.array([[products.get((a, b), 0) for b in names] for a in names]) / _SHARE_UNIT**2
        moment = np.array([moments.get(name, 0) for name in names]) / (_SHARE_UNIT * _SCORE_UNIT)
        precision = np.eye(len(names)) / spread**2
        found: Floats = np.linalg.solve(curvature / _NOISE + precision, moment / _NOISE + precision @ prior).astype(
            np.float64
        )
        return found

    def _add(self, evidence: Evidence, sign: int) -> None:
        if not evidence.namings or not evidence.views:
            return
        self._steps.clear()
        expected = sum(evidence.views[voter] for voter in sorted(evidence.views)) / len(evidence.views)
        surprise = round((evidence.score - expected) * _SCORE_UNIT)
        ahead = {voter: round(share * _SHARE_UNIT) for voter, share in evidence.namings.items()}
        for group in (_OVERALL, str(evidence.dimension)):
            products, moments = self._products[group], self._moments[group]
            for voter, share in ahead.items():
                moments[voter] += sign * share * surprise
                for other, its_share in ahead.items():
                    products[voter, other] += sign * share * its_share
