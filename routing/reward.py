"""The reward that everything in routing maximises."""

from dataclasses import dataclass


@dataclass(frozen=True)
class RewardWeights:
    """reward = score x `score` - USD x `usd`. The defaults are those of the paper (arXiv 2606.22902)."""

    score: float = 1.0
    usd: float = 0.1


DEFAULT_WEIGHTS = RewardWeights()


def reward(score: float, usd: float, weights: RewardWeights = DEFAULT_WEIGHTS) -> float:
    """Return the reward of an attempt with a score in [0, 1] that cost `usd` dollars."""
    return weights.score * score - weights.usd * usd
