"""How far the verifier's score is to be trusted: what became of attempts that it was content with, and of the others.

An attempt whose verification passes may still be wrong (a patch that applies is not yet a fix), and a right one may be
found wanting. Both are learnt from attempts whose verification and outcome are both known: the first by task and model
(`routing.false_passes`), the second, which is rare, for each model, backing off to the rate of all.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from routing.evidence import precedence
from routing.false_passes import FalsePasses
from routing.logits import Floats
from routing.types import Evidence, RoutingTask

CONTENT = 0.95
"""Verifier's score from which an attempt is handed in without another."""
_SOLVED = 0.5
_SENSITIVITY, _SENSITIVITY_STRENGTH = 0.95, 20.0
"""Before anything was seen; tests that pass on a wrong patch are far more usual than tests that fail on a right one."""
_MODEL_STRENGTH = 4.0


@dataclass
class _Count:
    solved: int = 0
    passes: int = 0
    """Of the solved ones."""


class Calibration:
    """Counts pairs of verification and outcome by model; keyed and order-free like the voters."""

    def __init__(self) -> None:
        self._provisional: dict[str, Evidence] = {}
        self._final: dict[str, Evidence] = {}
        self._counted: dict[str, tuple[str, bool, bool]] = {}
        self._counts: defaultdict[str, _Count] = defaultdict(_Count)
        self._false_passes = FalsePasses()

    def learn(self, evidence: Evidence) -> None:
        self._false_passes.describe(evidence)
        kept = self._final if evidence.final else self._provisional
        old = kept.get(evidence.key)
        if old is None or precedence(evidence) > precedence(old):
            kept[evidence.key] = evidence.bare
            self._recount(evidence.key)

    def forget(self, key: str) -> None:
        self._provisional.pop(key, None)
        self._final.pop(key, None)
        self._recount(key)
        self._false_passes.forget(key)

    def verifier_score(self, key: str) -> float | None:
        """Return what the verifier said of an attempt, as far as it is known."""
        final, provisional = self._final.get(key), self._provisional.get(key)
        if final is not None and final.verifier_score is not None:
            return final.verifier_score
        return None if provisional is None else provisional.score

    def passes(self, task: RoutingTask, models: Sequence[str], chances: Floats) -> Floats:
        """Return the (M, Q) chances that a verification passes, given those of success."""
        right = np.array([self._sensitivity(model) for model in models])[:, None]
        wrong = self._false_passes.rates(task, models)[:, None]
        found: Floats = chances * right + (1 - chances) * wrong
        return found

    def _sensitivity(self, model: str) -> float:
        """Return how often a right attempt of a model passes."""
        every, own = self._counts[""], self._counts[model]
        usual = (every.passes + _SENSITIVITY * _SENSITIVITY_STRENGTH) / (every.solved + _SENSITIVITY_STRENGTH)
        return (own.passes + usual * _MODEL_STRENGTH) / (own.solved + _MODEL_STRENGTH)

    def _recount(self, key: str) -> None:
        if (old := self._counted.pop(key, None)) is not None:
            self._add(*old, -1)
        final, said = self._final.get(key), self.verifier_score(key)
        if final is None or said is None:
            self._false_passes.drop(key)
            return
        passed, solved = said >= CONTENT, final.score >= _SOLVED
        self._counted[key] = final.model, passed, solved
        self._add(final.model, passed, solved, 1)
        if solved:
            self._false_passes.drop(key)
        else:
            self._false_passes.put(key, final.model, final.at, passed=passed)

    def _add(self, model: str, passed: bool, solved: bool, sign: int) -> None:
        for count in (self._counts[""], self._counts[model]):
            count.solved += sign * solved
            count.passes += sign * (solved and passed)
