"""Old evidence fades, with the number of newer attempts of any model.

A provider may put another model behind a name, and a repository's tasks change. Were a model's evidence to fade with
its own newer attempts alone, what is hardly ever tried would be believed for ever; so it comes back to what was known
of it beforehand, and is tried again.
"""

from bisect import bisect_left, insort
from collections.abc import Collection, Sequence
from datetime import datetime

import numpy as np

from routing.logits import Floats
from routing.types import Evidence

HALF_LIFE = 300.0
"""Newer attempts, of whatever model, after which an attempt counts half; chosen on drawn streams in which a model gets
better, where less is better, and on the published ID stream, where 150 is worse (docs/routing-experiments.md)."""
WINDOW = 1200
"""Attempts that are looked at: older ones would count less than a sixteenth."""

_FADED: Floats = 2.0 ** (-np.arange(WINDOW - 1, -1, -1) / HALF_LIFE)


class RecentEvidence:
    """The keys of the standing evidence in the order of its time, whatever the order of arrival."""

    def __init__(self) -> None:
        self._order: list[tuple[datetime, str]] = []

    def put(self, evidence: Evidence, old: Evidence | None) -> None:
        """Take in evidence that stands now, in place of `old`."""
        if old is not None:
            self.drop(old)
        insort(self._order, (evidence.at, evidence.key))

    def drop(self, evidence: Evidence) -> None:
        """Forget evidence that stood."""
        self._order.pop(bisect_left(self._order, (evidence.at, evidence.key)))

    def newest(self, *, without: Collection[str] = ()) -> tuple[Sequence[str], Floats]:
        """Return the keys of the newest WINDOW attempts, the oldest first, and how much each counts, in (0, 1].

        It is as if those `without` had never been.
        """
        keys = [key for _, key in self._order[-WINDOW - len(without) :] if key not in without][-WINDOW:]
        return keys, _FADED[WINDOW - len(keys) :]
