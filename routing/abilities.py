"""What each model can do on which tasks: logistic regression with shared and per-model weights (`routing.hierarchy`).

An attempt that followed failures was made on a harder task than usual. What the failures took from its chance
(`routing.failures`) is an offset of its logit, or models that are tried last would look worse than they are.

Everything is computed from the standing evidence in the order of its time, so that no order of arrival can be seen.
It fades (`routing.recent`), and what came before a model's change for the better is dropped (`routing.change`).
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from routing.change import changed_at
from routing.contexts import TEXT, FeatureBook, features
from routing.evidence import EvidenceBook, weight
from routing.failures import PRIOR_SPREAD, EarlierFailures, Pairs, pairs, spread_and_offsets
from routing.hierarchy import DEFAULT_SPREADS, STEPS, Posterior, Prior, Rows, Spreads, expected
from routing.logits import Floats, logits, sigmoid
from routing.recent import RecentEvidence
from routing.types import Evidence, Vector


@dataclass(frozen=True)
class Belief:
    """The logits of M models' scores on one task: jointly Gaussian."""

    mean: Floats
    """(M,)"""
    covariance: Floats
    """(M, M)"""
    spread: float
    """Of the tasks' difficulty that the features do not tell (`routing.difficulty`)."""
    known_apart: Floats
    """(M, M): the part of it that is not about this very text, but about models and the kind of task."""

    def scores(self) -> Floats:
        """Return the (M,) expected scores."""
        return expected(self.mean, np.diag(self.covariance))


@dataclass(frozen=True)
class _Fit:
    prior: Mapping[str, float]
    published: Collection[str]
    """Both of the pool, for which it was made."""
    names: Mapping[str, int]
    posterior: Posterior
    spread: float
    """Of the difficulty that the features do not tell."""


class Abilities:
    """Keeps the evidence; keyed and order-free like the voters."""

    def __init__(self, spreads: Spreads = DEFAULT_SPREADS) -> None:
        self._shared = spreads.shared()
        self._own = {published: spreads.own(published=published) for published in (False, True)}
        self._book = EvidenceBook()
        self._features = FeatureBook()
        self._recent = RecentEvidence()
        self._failures = EarlierFailures(self._book)
        self._fit: _Fit | None = None

    def learn(self, evidence: Evidence) -> None:
        stands, old = self._book.put(evidence)
        if self._features.put(evidence) or stands:
            self._fit = None
        if stands:
            self._recent.put(evidence, old)
            self._failures.put(evidence, old)

    def forget(self, key: str) -> None:
        old = self._book.remove(key)
        if old is None:
            return
        self._recent.drop(old)
        self._features.remove(key)
        self._failures.drop(old)
        self._fit = None

    def belief(
        self,
        dimension: str,
        traits: Sequence[float],
        embedding: Vector | None,
        names: Sequence[str],
        prior: Mapping[str, float],
        *,
        published: Collection[str] = (),
        without_task: str = "",
    ) -> Belief:
        """Return what is believed of some models on a task.

        Args:
            dimension: of the task, with its `traits` and `embedding`.
            traits: see `routing.contexts`.
            embedding: None where the task has none.
            names: the models.
            prior: the scores of all models of the pool before any evidence.
            published: those of them whose prior is told by published scores.
            without_task: what the attempts at this task have shown is left out.
        """
        fit = self._fitted(prior, published, self._failures.attempts(without_task) if without_task else ())
        models = [fit.names[name] for name in names]
        z = features(dimension, traits, embedding)
        plain = z.copy()
        plain[TEXT] = 0.0
        return Belief(
            fit.posterior.means[models] @ z,
            fit.posterior.covariance(models, z),
            fit.spread,
            fit.posterior.covariance(models, plain),
        )

    def _fitted(self, prior: Mapping[str, float], published: Collection[str], without: Collection[str]) -> _Fit:
        if without:
            return self._solve(dict(prior), published, self._by_model(without))
        if self._fit is None or self._fit.prior != prior or self._fit.published != published:
            self._fit = self._solve(dict(prior), published, self._by_model())
        return self._fit

    def _by_model(self, without: Collection[str] = ()) -> dict[str, list[tuple[str, float]]]:
        """Return (key, how much it counts) of each model's newest attempts, the oldest first."""
        found: defaultdict[str, list[tuple[str, float]]] = defaultdict(list)
        keys, counts = self._recent.newest(without=without)
        for key, count in zip(keys, counts.tolist(), strict=True):
            evidence = self._book.get(key)
            found[evidence.model].append((key, count * weight(evidence)))
        return dict(found)

    def _solve(
        self,
        prior: dict[str, float],
        published: Collection[str],
        attempts: Mapping[str, Sequence[tuple[str, float]]],
    ) -> _Fit:
        # Models that left the pool still tell how hard tasks are; without a prior of their own they are average.
        levels = dict.fromkeys(attempts, sum(prior.values()) / len(prior)) | prior
        names = sorted(levels)
        own = np.stack([self._own[name in published] for name in names])
        before = Prior.of(logits(np.array([levels[name] for name in names])), self._shared, own)
        rows = Rows.stacked([self._evidence(attempts.get(name, ())) for name in names])
        later = self._pairs([key for name in names for key, _ in attempts.get(name, ())])
        offsets, spread = np.zeros(len(rows.x)), PRIOR_SPREAD
        posterior = before.posterior()
        for step in range(STEPS if len(rows.x) else 0):
            reached = posterior.reached(rows)
            # The last two steps also see what the first two have brought to light: how failures go together, and
            # which models have changed.
            if later is not None and step >= STEPS - 2:
                spread, offsets[later.later] = spread_and_offsets(sigmoid(reached), rows.scores, rows.counts, later)
            chance = sigmoid(reached + offsets)
            if step == STEPS - 2:
                for _, mine in rows.slices:
                    changed = changed_at(rows.scores[mine] - chance[mine])
                    rows.counts[mine.start : mine.start + changed] = 0.0
            posterior = before.step(rows, reached, chance)
        return _Fit(prior, published, {name: n for n, name in enumerate(names)}, posterior, spread)

    def _pairs(self, keys: Sequence[str]) -> Pairs | None:
        """Return which of these attempts followed which failures; None: none did."""
        if not self._failures.any_followed:
            return None
        position = {key: number for number, key in enumerate(keys)}
        found = [
            (number, earlier)
            for key, number in position.items()
            if (failures := self._failures.of(key)) and (earlier := [position[f] for f in failures if f in position])
        ]
        return pairs([earlier for _, earlier in found], [number for number, _ in found]) if found else None

    def _evidence(self, attempts: Sequence[tuple[str, float]]) -> tuple[Floats, Floats, Floats]:
        """Return the (N, SIZE) features, (N,) scores and (N,) counts of attempts."""
        keys = [key for key, _ in attempts]
        scores = np.array([self._book.get(key).score for key in keys])
        return self._features.stacked(keys), scores, np.array([count for _, count in attempts])
