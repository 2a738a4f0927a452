"""Scenarios: a fixed number of evenly spread draws from a Gaussian, the same for every decision.

A draw from one of them at random is a draw whose probabilities are known exactly: counts over the scenarios.
"""

from functools import cache

import numpy as np

from routing.logits import Floats

SCENARIOS = 128


def draws(mean: Floats, covariance: Floats) -> Floats:
    """Return (SCENARIOS, M) draws from a Gaussian over M models."""
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    found: Floats = mean + standard(len(mean)) @ root.T
    return found


@cache
def standard(models: int) -> Floats:
    """Return (SCENARIOS, M) standard normal draws: seeded, antithetic, and with variances of exactly 1."""
    half = np.random.default_rng(5).standard_normal((SCENARIOS // 2, models))
    both = np.concatenate([half, -half])
    found: Floats = both / np.sqrt((both**2).mean(axis=0))
    return found
