"""What it is worth that a voter names a model: learnt for voters that give shares and no expected scores.

Such a voter says whom it would take and not how good that is. What its word is worth is a regression of scores on how
much of each voter's share a model had over an even split: joint, since voters copy each other, beside what is usual for
the dimension, for the model, and for the model on the dimension. All are Gaussian (a mixed linear model; Henderson
1975). The last is why a hundred attempts of one model on one dimension say little more of a voter that names it each
time than ten do: that it is good there may have nothing to do with the voter.

What a model's attempts on the dimension have shown, the other voters know. There a naming adds only what it is over
the usual naming of these attempts, as far as they are believed. Before anything was seen, all naming voters together
add ALL_TOGETHER to a model that all of them name for certain; and what a voter's word is worth is never below 0, since
a model that is passed over because it was named would never be seen to be good.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from routing.evidence import EvidenceBook
from routing.logits import Floats
from routing.types import Evidence

ALL_TOGETHER = 0.3
_SPREAD = 0.15
"""Standard deviation of what the word of all naming voters together is worth: that there are more of them makes them no
less sure. This and all that follow are in units of score."""
_LEVEL, _SPREAD_OF_DIMENSIONS = 0.5, 0.3
_SPREAD_OF_MODELS, _SPREAD_WITHIN = 0.15, 0.15
"""Of models, and of a model's dimensions around it: what `routing.hierarchy` believes of them in logits."""
_NOISE = 0.2
"""Variance of an attempt's score."""
_SHARE_UNIT, _SCORE_UNIT = 1024, 1_000_000

_Group = tuple[str, str]
"""(dimension, model)."""


@dataclass
class _Sums:
    """Of the attempts of one group, in whole units, which add up to the same in any order."""

    attempts: int = 0
    score: int = 0
    shares: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))


class NamingRecord:
    """Keeps sums; keyed and order-free like the voters."""

    def __init__(self) -> None:
        self._book = EvidenceBook()
        self._groups: defaultdict[_Group, _Sums] = defaultdict(_Sums)
        self._products: defaultdict[tuple[str, str], int] = defaultdict(int)
        self._moments: defaultdict[str, int] = defaultdict(int)
        self._worth: tuple[Mapping[str, float], dict[str, float]] | None = None

    def learn(self, evidence: Evidence) -> None:
        self._book.count(evidence, self._add)

    def forget(self, key: str) -> None:
        self._book.uncount(key, self._add)

    def additions(
        self, configured: Mapping[str, float], named: Mapping[str, Mapping[str, float]], dimension: str
    ) -> dict[str, float]:
        """Return what namings add to the expected scores of the models on a dimension.

        Args:
            configured: the weights of the naming voters.
            named: by voter and model, the share over an even split.
            dimension: of the task.
        """
        worth = self.worth(configured)
        found: defaultdict[str, float] = defaultdict(float)
        for voter in sorted(named):
            for model, share in named[voter].items():
                found[model] += worth.get(voter, 0.0) * (share - self._usual(dimension, model, voter))
        return dict(found)

    def worth(self, configured: Mapping[str, float]) -> dict[str, float]:
        """Return what each voter's share over an even split is worth, in units of score."""
        if self._worth is None or self._worth[0] != configured:
            self._worth = dict(configured), self._solve(configured)
        return self._worth[1]

    def _usual(self, dimension: str, model: str, voter: str) -> float:
        """Return a voter's mean naming of a model on a dimension, as far as the attempts there are believed."""
        sums = self._groups.get((str(dimension), model))
        return 0.0 if sums is None else _believed(sums.attempts) * sums.shares.get(voter, 0) / _SHARE_UNIT

    def _solve(self, configured: Mapping[str, float]) -> dict[str, float]:
        voters, total = sorted(configured), sum(configured.values())
        if not voters or total <= 0:
            return dict.fromkeys(voters, 0.0)
        prior: Floats = ALL_TOGETHER * np.array([configured[name] for name in voters], dtype=np.float64) / total
        if not self._groups:
            return dict(zip(voters, prior.tolist(), strict=True))
        groups = sorted(self._groups)
        dimensions, models = (sorted({group[part] for group in groups}) for part in range(2))
        sums = [self._groups[group] for group in groups]
        design = np.zeros((len(groups), len(dimensions) + len(models) + len(voters)))
        rows = np.arange(len(groups))
        attempts = np.array([one.attempts for one in sums], dtype=np.float64)
        design[rows, [dimensions.index(dimension) for dimension, _ in groups]] = attempts
        design[rows, [len(dimensions) + models.index(model) for _, model in groups]] = attempts
        named = slice(len(dimensions) + len(models), design.shape[1])
        design[:, named] = np.array([[one.shares.get(name, 0) for name in voters] for one in sums]) / _SHARE_UNIT
        scores = np.array([one.score for one in sums]) / _SCORE_UNIT
        # A group's own level is integrated out: its attempts are a mean with a variance, and what differs around it.
        believed = np.array([_believed(one.attempts) for one in sums])
        precision = (design * (1 / attempts - believed)[:, None]).T @ design
        moment = design.T @ (scores * (1 / attempts - believed))
        within, between = self._within(voters), design[:, named] / attempts[:, None]
        precision[named, named] += within - between.T @ design[:, named]
        moment[named] += self._within_scores(voters) - between.T @ scores
        start = np.concatenate([np.full(len(dimensions), _LEVEL), np.zeros(len(models)), prior])
        spreads = (_SPREAD_OF_DIMENSIONS, _SPREAD_OF_MODELS, _SPREAD / math.sqrt(len(voters)))
        known = np.repeat(np.array(spreads) ** -2.0, [len(dimensions), len(models), len(voters)])
        found = _mode(precision / _NOISE + np.diag(known), moment / _NOISE + known * start, named.start)
        return dict(zip(voters, found[named].tolist(), strict=True))

    def _within(self, voters: Sequence[str]) -> Floats:
        found: Floats = np.array([[self._products.get((a, b), 0) for b in voters] for a in voters]) / _SHARE_UNIT**2
        return found

    def _within_scores(self, voters: Sequence[str]) -> Floats:
        found: Floats = np.array([self._moments.get(name, 0) for name in voters]) / (_SHARE_UNIT * _SCORE_UNIT)
        return found

    def _add(self, evidence: Evidence, sign: int) -> None:
        if not evidence.namings:
            return
        self._worth = None
        group = str(evidence.dimension), evidence.model
        sums = self._groups[group]
        score = round(evidence.score * _SCORE_UNIT)
        shares = {voter: round(share * _SHARE_UNIT) for voter, share in evidence.namings.items()}
        sums.attempts += sign
        sums.score += sign * score
        for voter, share in shares.items():
            sums.shares[voter] += sign * share
            self._moments[voter] += sign * share * score
            for other, its_share in shares.items():
                self._products[voter, other] += sign * share * its_share
        if not sums.attempts:
            del self._groups[group]


def _mode(precision: Floats, moment: Floats, free: int) -> Floats:
    """Return the mode of a Gaussian (K,), of which all but the first `free` places are kept from falling below 0.

    The lowest is left out until none is below, which is nearly always that mode, and found in a few steps.
    """
    kept = np.arange(len(moment))
    while True:
        found = np.zeros(len(moment))
        found[kept] = np.linalg.solve(precision[np.ix_(kept, kept)], moment[kept])
        lowest = free + int(np.argmin(found[free:]))
        if found[lowest] >= 0.0:
            return found
        kept = kept[kept != lowest]


def _believed(attempts: int) -> float:
    """Return how far the level of a group of attempts is believed, per attempt: their sum is in [0, 1)."""
    return _SPREAD_WITHIN**2 / (_NOISE + attempts * _SPREAD_WITHIN**2)
