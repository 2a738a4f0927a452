"""From votes to one belief: what each voter believes of each model, and the weighted mean of it.

A voter that gives expected scores is taken at its word. One that only names models (shares) is read as moving what the
others believe: a model that it names for certain by STEP in logits, less what naming any model would do.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from routing.logits import Floats, logits, sigmoid
from routing.priors import prior_scores
from routing.types import Pool, Vote

STEP = 1.5


def views(votes: Sequence[Vote], pool: Pool) -> dict[str, dict[str, float]]:
    """Return what each voter that does not abstain believes of each model's score, by voter and model."""
    names = list(pool.names)
    prior = prior_scores(pool)
    believers = [vote for vote in votes if not vote.abstains and vote.expected_scores]
    told = {v.voter: np.array([_kept(v.expected_scores.get(n, prior[n])) for n in names]) for v in believers}
    base = logits(np.array([prior[name] for name in names]))
    if believers:
        base = _pooled([logits(told[v.voter]) for v in believers], [v.weight * v.confidence for v in believers], base)
    for vote in votes:
        if not vote.abstains and not vote.expected_scores:
            shares = np.array([vote.shares.get(name, 0.0) for name in names])
            told[vote.voter] = sigmoid(base + STEP * (shares - 1 / len(names)))
    return {voter: dict(zip(names, scores.tolist(), strict=True)) for voter, scores in told.items()}


def expected_scores(votes: Sequence[Vote], believed: Mapping[str, Mapping[str, float]], pool: Pool) -> dict[str, float]:
    """Return each model's expected score in [0, 1]: the views by weight x confidence in logits, else the prior."""
    names = list(pool.names)
    prior = prior_scores(pool)
    heard = [vote for vote in votes if vote.voter in believed]
    rows = [logits(np.array([believed[vote.voter][name] for name in names])) for vote in heard]
    base = logits(np.array([prior[name] for name in names]))
    pooled = sigmoid(_pooled(rows, [vote.weight * vote.confidence for vote in heard], base))
    return dict(zip(names, pooled.tolist(), strict=True))


def _pooled(rows: Sequence[Floats], masses: Sequence[float], otherwise: Floats) -> Floats:
    total = sum(masses)
    if total <= 0:
        return otherwise
    found: Floats = np.einsum("v,vm->m", np.array(masses) / total, np.stack(rows))
    return found


def _kept(score: float) -> float:
    return min(max(score, 0.0), 1.0)
