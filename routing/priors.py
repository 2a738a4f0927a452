"""What is believed of a model before any of its attempts was seen: the market prices quality, a little.

Expected score = LOWEST + SPREAD x (where the model's price stands between the pool's cheapest and dearest, log scale).
A mild slope on purpose: a price ten times higher buys less than its cost in reward, so that both ends get tried.
"""

from collections.abc import Sequence

from routing.pool import price_positions
from routing.types import Pool

LOWEST = 0.45
SPREAD = 0.2
STRENGTH = 3.0
"""The prior counts as this many attempts."""


def prior_scores(pool: Pool) -> dict[str, float]:
    """Return each model's expected score before any evidence, in [0, 1]."""
    names: Sequence[str] = pool.names
    positions = price_positions([pool.prior_cost_usd(name) for name in names])
    return {name: LOWEST + SPREAD * position for name, position in zip(names, positions, strict=True)}
