"""What is believed of a model before any of its attempts was seen: published scores, else the market's price.

A model of the shipped profile is expected at LEVEL, moved by its published ability (`routing.profile`). For any other
the market prices quality, a little: LOWEST + SPREAD x (where its price stands between the pool's cheapest and dearest,
log scale). A mild slope on purpose: a price ten times higher buys less than its cost in reward, so that both ends get
tried.
"""

import math
from collections.abc import Collection, Mapping, Sequence

from routing.logits import logit
from routing.profile import published_ability
from routing.types import Pool

LEVEL = 0.55
"""Where the profile's average model is expected. In the middle of what price gives: neither kind has an advantage."""
LOWEST = 0.45
SPREAD = 0.2
STRENGTH = 3.0
"""The prior counts as this many attempts."""


def prior_scores(pool: Pool) -> dict[str, float]:
    """Return each model's expected score before any evidence, in [0, 1]."""
    priors = pool.priors
    return {name: priors[name] for name in pool.names}


def market_priors(
    models: Mapping[str, tuple[float, Sequence[str]]], *, without: Collection[str] = ()
) -> dict[str, float]:
    """Return expected scores by name, for models given as (prior cost in USD, names that a profile may know).

    `without`: benchmarks of the profile that are left out.
    """
    positions = price_positions([cost for cost, _ in models.values()])
    scores = {}
    for (name, (_, known_as)), position in zip(models.items(), positions, strict=True):
        ability = published_ability(*known_as, without=without)
        priced = LOWEST + SPREAD * position
        scores[name] = priced if ability is None else 1 / (1 + math.exp(-logit(LEVEL) - ability))
    return scores


def price_positions(prior_costs: Sequence[float]) -> list[float]:
    """Return where each cost (USD) stands between the cheapest (0) and the dearest (1), on a log scale.

    Costs below a hundredth of a cent count as that; all alike stand in the middle.
    """
    logs = [math.log(max(cost, 1e-4)) for cost in prior_costs]
    low, high = min(logs), max(logs)
    return [0.5] * len(logs) if high - low < 1e-9 else [(value - low) / (high - low) for value in logs]
