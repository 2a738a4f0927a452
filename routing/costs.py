"""What attempts are expected to cost: the mean of those seen, or price x prior tokens."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from routing.pool import ModelPool
from routing.tallies import Tallies

PRIOR_ATTEMPTS = 1.0
"""The prior cost counts as one attempt: costs vary far less between attempts than scores do."""


@dataclass(frozen=True)
class Candidates:
    """The models of one decision with their expected costs. Fulfils the Protocol `Pool`."""

    names: tuple[str, ...]
    costs: Mapping[str, float]
    prior_costs: Mapping[str, float]
    prior_scores: Mapping[str, float]

    def expected_cost_usd(self, model: str) -> float:
        return self.costs[model]

    def prior_cost_usd(self, model: str) -> float:
        return self.prior_costs[model]

    def prior_score(self, model: str) -> float:
        return self.prior_scores[model]

    def without(self, models: Collection[str]) -> "Candidates":
        """Return the candidates but for some; may be empty."""
        return Candidates(tuple(name for name in self.names if name not in models), self.costs, self.prior_costs, self.prior_scores)


def candidates(pool: ModelPool, tallies: Tallies, dimension: str) -> Candidates:
    """Return the pool's models with the expected cost in USD of an attempt at a task of `dimension`.

    A dimension's own mean backs off to the model's mean over all, and that one to the price.
    """
    prior = {spec.name: spec.prior_cost_usd for spec in pool.models}
    costs = {
        name: tallies.of(dimension, name).mean_cost(
            tallies.of_model(name).mean_cost(prior[name], PRIOR_ATTEMPTS), PRIOR_ATTEMPTS
        )
        for name in prior
    }
    return Candidates(tuple(prior), costs, prior, pool.priors)
