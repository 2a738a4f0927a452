"""Synthetic logged decisions whose true value is known."""

import numpy as np

from routing.replay import Floats, Round

VALUES = (0.3, 0.5, 0.7)
"""Mean reward of each of three models; tasks of the second kind turn them around."""


def synthetic_rounds(count: int, seed: int) -> tuple[list[Round], float]:
    """Return rounds of a policy that prefers the first model, and the true value of one that knows the kinds."""
    rng = np.random.default_rng(seed)
    logging = np.array([[0.6, 0.3, 0.1], [0.4, 0.4, 0.2]])
    other = np.array([[0.05, 0.15, 0.8], [0.8, 0.15, 0.05]])
    means = np.array([VALUES, VALUES[::-1]])
    rounds = []
    for _ in range(count):
        kind = int(rng.integers(2))
        chosen = int(rng.choice(3, p=logging[kind]))
        reward = float(rng.random() < means[kind, chosen])
        guess: Floats = np.clip(means[kind] + rng.normal(0, 0.2, 3), 0, 1)  # a wrong model, as ours is
        rounds.append(Round(logging[kind].tolist(), chosen, reward, other[kind].tolist(), guess.tolist()))
    return rounds, float(np.mean(np.sum(other * means, axis=1)))
