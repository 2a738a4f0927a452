"""The voters, each in a module of its own. A line in `FACTORIES` makes one known to the configuration."""

from collections.abc import Callable, Mapping

from routing.errors import RoutingError
from routing.reward import DEFAULT_WEIGHTS as DEFAULT_REWARD
from routing.reward import RewardWeights
from routing.types import Voter
from routing.voters.bandit import Bandit
from routing.voters.dimension_best import DimensionBest
from routing.voters.memory_knn import MemoryKnn
from store.errors import ConfigurationError
from store.suggest import did_you_mean

Factory = Callable[[RewardWeights], Voter]

FACTORIES: dict[str, Factory] = {
    "dimension_best": DimensionBest,
    "memory_knn": MemoryKnn,
    "bandit": Bandit,
}

DEFAULT_WEIGHTS: Mapping[str, float] = {"dimension_best": 1.0, "memory_knn": 1.5, "bandit": 1.0}
"""Neighbours say most about a task; the bandit and the averages count alike."""


class VoterError(ConfigurationError, RoutingError):
    """The voters' configuration is wrong: an unknown name, a weight below zero, no voter at all."""


OPTIONAL: Mapping[str, str] = {
    "policy_llm": "set ACROUTER_POLICY_URL and ACROUTER_POLICY_MODEL",
    "logreg": "set ACROUTER_LOGREG_FILE",
}
"""Voters that need something of the operator's (`routing.voters.optional`), and what."""


def make_voters(
    weights: Mapping[str, float],
    reward_weights: RewardWeights = DEFAULT_REWARD,
    factories: Mapping[str, Factory] = FACTORIES,
) -> dict[str, Voter]:
    """Return the voters with a weight above 0, by name.

    Raises:
        VoterError: a name is unknown (the message suggests the closest), a weight is negative, or none is above 0.
    """
    for name, weight in weights.items():
        if name in OPTIONAL and name not in factories:
            if not weight:
                continue
            raise VoterError(f"voter_weights: '{name}' has a weight, but is not set up: {OPTIONAL[name]}.")
        if name not in factories:
            known = [*factories, *(name for name in OPTIONAL if name not in factories)]
            raise VoterError(
                f"voter_weights: unknown voter '{name}'.{did_you_mean(name, known)} Known: {', '.join(known)}."
            )
        if not 0.0 <= weight < float("inf"):
            raise VoterError(f"voter_weights: the weight of '{name}' is {weight}; it must be 0 or more.")
    voters = {name: factories[name](reward_weights) for name, weight in weights.items() if weight > 0}
    if not voters:
        raise VoterError("voter_weights: no voter has a weight above 0. Give at least one.")
    return voters
