"""Routing's branch of the error tree."""

from store.errors import AcrouterError, ConfigurationError


class RoutingError(AcrouterError):
    """Base of what can go wrong while choosing a model."""


class PoolError(ConfigurationError, RoutingError):
    """models.yaml is wrong: an unknown key, a missing price, an empty pool, an unknown model."""


class NoModelLeft(RoutingError):  # noqa: N818  (it reads as what it is)
    """Every model is excluded, denied, too dear for the budget or already tried."""


class EncoderError(RoutingError):
    """The encoder cannot be loaded or gave vectors of another shape."""


class TrainingError(ConfigurationError, RoutingError):
    """A profile or a trained file is wrong, or there is too little to learn from."""


class ProfileError(ConfigurationError, RoutingError):
    """A profile of published scores is wrong: a key, a score out of range, a missing source."""
