"""From expected rewards to the shares of a vote."""

import math
from collections.abc import Mapping

TEMPERATURE = 0.1
"""Reward by which a model must be ahead for e times the share."""


def softmax_shares(rewards: Mapping[str, float], temperature: float = TEMPERATURE) -> dict[str, float]:
    """Return shares that sum to 1, growing with the expected reward."""
    highest = max(rewards.values())
    raw = {model: math.exp((value - highest) / temperature) for model, value in rewards.items()}
    total = sum(raw.values())
    return {model: value / total for model, value in raw.items()}
