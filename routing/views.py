"""From votes to one belief: what each voter believes of each model, and the weighted mean of it.

A voter that gives expected scores is taken at its word, by weight x confidence. One that only names models (shares)
adds to these what its word has been worth (`routing.namings`).
"""

from collections.abc import Mapping, Sequence

import numpy as np

from routing.logits import logits, sigmoid
from routing.priors import prior_scores
from routing.types import Pool, Vote

_EDGE = 0.01


def views(votes: Sequence[Vote], pool: Pool) -> dict[str, dict[str, float]]:
    """Return what each voter with expected scores believes of each model's score, by voter and model."""
    prior = prior_scores(pool)
    return {
        vote.voter: {name: min(max(vote.expected_scores.get(name, prior[name]), 0.0), 1.0) for name in pool.names}
        for vote in votes
        if not vote.abstains and vote.expected_scores
    }


def namings(votes: Sequence[Vote], pool: Pool) -> dict[str, dict[str, float]]:
    """Return each other voter's share of each model over an even split, by voter and model."""
    even = 1 / len(pool.names)
    return {
        vote.voter: {name: vote.shares.get(name, 0.0) - even for name in pool.names}
        for vote in votes
        if not vote.abstains and not vote.expected_scores
    }


def expected_scores(
    votes: Sequence[Vote],
    believed: Mapping[str, Mapping[str, float]],
    added: Mapping[str, float],
    pool: Pool,
) -> dict[str, float]:
    """Return each model's expected score in [0, 1]: the mean of the views in logits, else the prior, and the namings.

    Args:
        votes: with their weights.
        believed: as `views` gives it.
        added: by model, what namings add to its score; empty: nobody named any.
        pool: the models.
    """
    names = list(pool.names)
    prior = prior_scores(pool)
    heard = [vote for vote in votes if vote.voter in believed]
    masses = np.array([vote.weight * vote.confidence for vote in heard])
    if masses.sum() > 0:
        rows = np.stack([logits(np.array([believed[vote.voter][name] for name in names])) for vote in heard])
        pooled = sigmoid(masses @ rows / masses.sum())
    else:
        pooled = np.array([prior[name] for name in names])
    if added:
        pooled = np.clip(pooled + np.array([added[name] for name in names]), _EDGE, 1 - _EDGE)
    return dict(zip(names, pooled.tolist(), strict=True))
