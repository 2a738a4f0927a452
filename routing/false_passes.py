"""How often a wrong attempt passes the verification, on which tasks and by which models.

Where tests are few nearly everything passes, where they are many nearly nothing does: it depends on the kind of task
and on its text (a repository's tasks read alike) as much as on the model. So it is the same regression as that of the
abilities (`routing.hierarchy`), over attempts that turned out to be wrong.
"""

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from routing.contexts import SIZE, FeatureBook, features
from routing.hierarchy import DEFAULT_SPREADS, STEPS, Posterior, Prior, Rows
from routing.logits import Floats, logit, sigmoid
from routing.types import Evidence, RoutingTask

BEFORE = 0.2
"""Before anything was seen."""
WINDOW = 300
"""Wrong attempts of a model that are looked at, the newest."""


@dataclass(frozen=True, order=True)
class _Wrong:
    at: datetime
    key: str
    model: str
    passed: bool


class FalsePasses:
    """Keeps attempts that turned out to be wrong; keyed and order-free like the voters."""

    def __init__(self) -> None:
        self._features = FeatureBook()
        self._wrong: dict[str, _Wrong] = {}
        self._order: defaultdict[str, list[_Wrong]] = defaultdict(list)
        """By model, in the order of their time."""
        self._fit: tuple[dict[str, int], Posterior] | None = None

    def describe(self, evidence: Evidence) -> None:
        """Take in what is known of the task of an attempt, whether it is known to be wrong or not."""
        if self._features.put(evidence) and evidence.key in self._wrong:
            self._fit = None

    def put(self, key: str, model: str, at: datetime, *, passed: bool) -> None:
        """Take in an attempt that was described and turned out to be wrong."""
        self.drop(key)
        wrong = self._wrong[key] = _Wrong(at, key, model, passed)
        insort(self._order[model], wrong)
        self._fit = None

    def drop(self, key: str) -> None:
        """Take back that an attempt was wrong."""
        if (wrong := self._wrong.pop(key, None)) is not None:
            order = self._order[wrong.model]
            order.pop(bisect_left(order, wrong))
            if not order:
                del self._order[wrong.model]
            self._fit = None

    def forget(self, key: str) -> None:
        """Forget an attempt and its task."""
        self.drop(key)
        self._features.remove(key)

    def rates(self, task: RoutingTask, models: Sequence[str]) -> Floats:
        """Return the chances of (M,) models' wrong attempts at a task to pass."""
        if not self._wrong:
            return np.full(len(models), BEFORE)
        if self._fit is None or not self._fit[0].keys() >= set(models):
            self._fit = self._solve({*models, *self._order})
        names, posterior = self._fit
        return posterior.scores(
            [names[model] for model in models], features(task.dimension, task.traits, task.embedding)
        )

    def _solve(self, models: set[str]) -> tuple[dict[str, int], Posterior]:
        names = {name: place for place, name in enumerate(sorted(models))}
        rows = Rows.stacked([self._rows(self._order.get(name, [])[-WINDOW:]) for name in names])
        before = Prior.of(np.full(len(names), logit(BEFORE)), DEFAULT_SPREADS.shared(), DEFAULT_SPREADS.own())
        posterior = before.posterior()
        for _ in range(STEPS):
            reached = posterior.reached(rows)
            posterior = before.step(rows, reached, sigmoid(reached))
        return names, posterior

    def _rows(self, newest: Sequence[_Wrong]) -> tuple[Floats, Floats, Floats]:
        x = self._features.stacked([wrong.key for wrong in newest]) if newest else np.empty((0, SIZE))
        return x, np.array([float(wrong.passed) for wrong in newest]), np.ones(len(newest))
