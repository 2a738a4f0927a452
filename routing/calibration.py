"""How far the verifier's score is to be trusted: what became of attempts that it was content with, and of the others.

An attempt whose verification passes may still be wrong (a patch that applies is not yet a fix), and a right one may be
found wanting. Both rates are learnt for each model from attempts whose verification and outcome are both known, and
back off to the rates of all models.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from routing.evidence import precedence
from routing.logits import Floats
from routing.types import Evidence

CONTENT = 0.95
"""Verifier's score from which an attempt is handed in without another."""
_SOLVED = 0.5
_FALSE_PASS, _FALSE_PASS_STRENGTH = 0.2, 4.0
_SENSITIVITY, _SENSITIVITY_STRENGTH = 0.95, 20.0
"""Before anything was seen; tests that pass on a wrong patch are far more usual than tests that fail on a right one."""
_MODEL_STRENGTH = 4.0


@dataclass
class _Count:
    solved: int = 0
    solved_passes: int = 0
    wrong: int = 0
    wrong_passes: int = 0


class Calibration:
    """Counts pairs of verification and outcome by model; keyed and order-free like the voters."""

    def __init__(self) -> None:
        self._provisional: dict[str, Evidence] = {}
        self._final: dict[str, Evidence] = {}
        self._counted: dict[str, tuple[str, bool, bool]] = {}
        self._counts: defaultdict[str, _Count] = defaultdict(_Count)

    def learn(self, evidence: Evidence) -> None:
        kept = self._final if evidence.final else self._provisional
        old = kept.get(evidence.key)
        if old is None or precedence(evidence) > precedence(old):
            kept[evidence.key] = evidence.bare
            self._recount(evidence.key)

    def forget(self, key: str) -> None:
        self._provisional.pop(key, None)
        self._final.pop(key, None)
        self._recount(key)

    def verifier_score(self, key: str) -> float | None:
        """Return what the verifier said of an attempt, as far as it is known."""
        final, provisional = self._final.get(key), self._provisional.get(key)
        if final is not None and final.verifier_score is not None:
            return final.verifier_score
        return None if provisional is None else provisional.score

    def passes(self, models: Sequence[str], chances: Floats) -> Floats:
        """Return the chances that a verification passes, given the (M, Q) chances of success."""
        rates = np.array([self._rates(model) for model in models])
        found: Floats = chances * rates[:, :1] + (1 - chances) * rates[:, 1:]
        return found

    def _rates(self, model: str) -> tuple[float, float]:
        """Return how often a right and a wrong attempt of a model pass."""
        every, own = self._counts[""], self._counts[model]
        sensitivity = (every.solved_passes + _SENSITIVITY * _SENSITIVITY_STRENGTH) / (
            every.solved + _SENSITIVITY_STRENGTH
        )
        false_pass = (every.wrong_passes + _FALSE_PASS * _FALSE_PASS_STRENGTH) / (every.wrong + _FALSE_PASS_STRENGTH)
        return (
            (own.solved_passes + sensitivity * _MODEL_STRENGTH) / (own.solved + _MODEL_STRENGTH),
            (own.wrong_passes + false_pass * _MODEL_STRENGTH) / (own.wrong + _MODEL_STRENGTH),
        )

    def _recount(self, key: str) -> None:
        if (old := self._counted.pop(key, None)) is not None:
            self._add(*old, -1)
        final, said = self._final.get(key), self.verifier_score(key)
        if final is not None and said is not None:
            pair = (final.model, said >= CONTENT, final.score >= _SOLVED)
            self._counted[key] = pair
            self._add(*pair, 1)

    def _add(self, model: str, passed: bool, solved: bool, sign: int) -> None:
        for count in (self._counts[""], self._counts[model]):
            if solved:
                count.solved += sign
                count.solved_passes += sign * passed
            else:
                count.wrong += sign
                count.wrong_passes += sign * passed
