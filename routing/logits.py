"""Probabilities and their logits."""

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_EDGE = 0.01
"""Nothing here is believed to be surer than this."""


def logit(probability: float) -> float:
    """Return the logit of a probability, which is kept from 0 and 1."""
    kept = min(max(probability, _EDGE), 1 - _EDGE)
    return math.log(kept / (1 - kept))


def logits(probabilities: Floats) -> Floats:
    """Return `logit` of each element."""
    kept = np.minimum(np.maximum(probabilities, _EDGE), 1 - _EDGE)
    found: Floats = np.log(kept / (1 - kept))
    return found


def sigmoid(values: Floats) -> Floats:
    """Return the logistic function of each element."""
    found: Floats = 1 / (1 + np.exp(-values))
    return found
