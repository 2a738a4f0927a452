"""The models of one decision, with what an attempt of each is expected to cost and to score."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from routing.cost_model import CostModel
from routing.pool import ModelPool
from routing.types import RoutingTask


@dataclass(frozen=True)
class Candidates:
    """The models of one decision with their expected costs. Fulfils the Protocol `Pool`."""

    names: tuple[str, ...]
    costs: Mapping[str, float]
    prior_costs: Mapping[str, float]
    priors: Mapping[str, float]
    published: Collection[str]

    def expected_cost_usd(self, model: str) -> float:
        return self.costs[model]

    def prior_cost_usd(self, model: str) -> float:
        return self.prior_costs[model]

    def without(self, models: Collection[str]) -> "Candidates":
        """Return the candidates but for some; may be empty."""
        return replace(self, names=tuple(name for name in self.names if name not in models))


def candidates(pool: ModelPool, costs: CostModel, task: RoutingTask) -> Candidates:
    """Return the pool's models with the expected cost in USD of an attempt at `task`."""
    prior = {spec.name: spec.prior_cost_usd for spec in pool.models}
    return Candidates(tuple(prior), costs.expected(task, prior), prior, pool.priors, pool.published)
