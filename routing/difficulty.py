"""One latent difficulty for all models of a task: where failures that come together come from.

A model that solves the share p of tasks solves one of difficulty x (standard normal) with probability
sigmoid(a(p) - spread x): a Rasch model (1960), with a(p) such that the mean over x is p. With a spread of 0 failures
are independent; with a large one, tasks are easy for all or hard for all. A failed attempt moves the distribution of
the difficulty, and with it what is expected of every other model: little after the failure of a weak model, much after
that of a strong one.
"""

import math

import numpy as np

from routing.logits import Floats, logits, sigmoid

_NODES, _RAW_WEIGHTS = np.polynomial.hermite_e.hermegauss(9)
NODE_WEIGHTS: Floats = _RAW_WEIGHTS / _RAW_WEIGHTS.sum()
"""Of the difficulty's grid (Gauss-Hermite), before anything was tried; they sum to 1."""


def curves(scores: Floats, spread: float | Floats) -> Floats:
    """Return the (..., Q) chances of success on each of the Q difficulties, for models of mean `scores` (...,).

    Several spreads are broadcast with the scores.

    a(p) = logit(p) sqrt(1 + pi spread^2 / 8) (MacKay 1992) and then scaled so that the means are exact.
    """
    steep = logits(scores) * np.sqrt(1 + math.pi * np.square(spread) / 8)
    raw = sigmoid(steep[..., None] - np.multiply.outer(spread, _NODES))
    means = raw @ NODE_WEIGHTS
    kept = np.minimum(np.maximum(scores, 0.01), 0.99)
    # Scaled towards 0 or 1, whichever keeps them probabilities.
    down = raw * (kept / means)[..., None]
    up = 1 - (1 - raw) * ((1 - kept) / (1 - means))[..., None]
    found: Floats = np.where((kept < means)[..., None], down, up)
    return found
