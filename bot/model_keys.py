"""Which of the pool's models have no key, told before work starts."""

import structlog

from routing.pool import ModelPool, resolve_key
from store.errors import ConfigurationError
from store.settings import ENV_FILE, PREFIX
from store.settings_mistakes import read_places

_log = structlog.get_logger(__name__)


def missing_keys(pool: ModelPool) -> dict[str, str]:
    """Return the models whose keys cannot be had now, each with what to do."""
    missing = {}
    for spec in pool.models:
        try:
            resolve_key(spec)
        except ConfigurationError as error:
            missing[spec.name] = str(error) + _misplaced(spec.api_key_env)
    return missing


def require_a_key(pool: ModelPool) -> None:
    """Warn of each model whose key cannot be had.

    Raises:
        ConfigurationError: it is so of all: no task could be worked on.
    """
    missing = missing_keys(pool)
    if len(missing) == len(pool.models):
        raise ConfigurationError("No model of the pool can be used.\n" + "\n".join(missing.values()))
    for model, why in missing.items():
        _log.warning("model.no_key", model=model, why=why)


def _misplaced(variable: str | None) -> str:
    if variable and variable in read_places(ENV_FILE, PREFIX).in_file:
        return f" It stands in {ENV_FILE}, which is for settings alone; export it."
    return ""
