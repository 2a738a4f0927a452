"""How to call the pool's models, and which not to call."""

from collections.abc import Mapping
from datetime import datetime

from routing.pool import ModelPool, resolve_key
from sandbox.agent_types import ModelEndpoint
from workers.run import Run

REFUSED = "RequestRefused"
"""How an attempt ends whose model's provider did not take the request."""


def endpoint(run: Run, model: str) -> ModelEndpoint:
    """Return how to call a model, with its key read at this moment."""
    spec = run.runtime.pool.get(model)
    return ModelEndpoint(
        name=spec.name,
        litellm_id=spec.litellm_id,
        input_usd_per_mtok=spec.input_usd_per_mtok,
        output_usd_per_mtok=spec.output_usd_per_mtok,
        cached_input_usd_per_mtok=spec.cached_input_usd_per_mtok,
        api_base=spec.api_base,
        api_key=resolve_key(spec),
        context_tokens=spec.context_tokens,
        max_output_tokens=spec.max_output_tokens,
        timeout_s=run.runtime.settings.model_timeout_s,
        extra=spec.extra,
    )


def resting(run: Run) -> Mapping[str, datetime]:
    """Return the models to pass over because their endpoints fail, each with when it may be tried again."""
    with run.runtime.database.reading() as session:
        return run.runtime.breakers.open(session)


def is_same_model(pool: ModelPool, name: str, other: str) -> bool:
    """Return whether two names stand for one model: entries of the pool may differ in price or length alone."""
    ids = {spec.name: spec.litellm_id for spec in pool.models}
    return name == other or (name in ids and ids[name] == ids.get(other))
