"""The root of acrouter's error tree.

AcrouterError
├── ConfigurationError      something a person wrote is wrong; the message says what to do
├── routing.errors.RoutingError
├── sandbox.errors.SandboxError
├── workers.errors.PipelineError
└── bot.errors.BotError

Each room keeps its own branch in its `errors` module.
"""


class AcrouterError(Exception):
    """Base of every error that acrouter raises on purpose."""


class ConfigurationError(AcrouterError):
    """Something a person wrote is wrong. The message names it and says what to do."""
