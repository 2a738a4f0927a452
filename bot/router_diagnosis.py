"""The checks of `acrouter doctor` on what makes the router: encoder, voters, and each model's entry in the pool."""

from collections.abc import Iterator

from bot.github_app.findings import Finding
from bot.model_keys import missing_keys
from routing.encoders import make_encoder
from routing.encoders.hashing import HashingEncoder
from routing.pool import ModelPool, ModelSpec, load_pool
from routing.voters import make_voters
from routing.voters.optional import configured
from store.errors import AcrouterError
from store.settings import Settings
from store.types import utc_now


def check_encoder(settings: Settings) -> Iterator[Finding]:
    """Load it, as `acrouter up` does.

    Raises:
        EncoderError: it is unknown or cannot be loaded.
    """
    yield Finding("ok", "encoder", make_encoder(settings.encoder).name)


def check_voters(settings: Settings) -> Iterator[Finding]:
    """Make them, as `acrouter up` does. Says nothing where the pool or the encoder that they need is broken itself.

    Raises:
        AcrouterError: a voter is unknown, its weight is wrong, or its file cannot be read.
    """
    try:
        pool = load_pool(settings.models_file)
        # Only a trained file is compared with the encoder.
        encoder = HashingEncoder() if settings.logreg_file is None else make_encoder(settings.encoder)
    except AcrouterError:
        return
    factories, weights = configured(settings, encoder, pool)
    yield Finding("ok", "voters", ", ".join(make_voters(weights, factories=factories)))


def check_models(settings: Settings) -> Iterator[Finding]:
    """Say of each model what it costs and is expected to score, and what is wrong with its entry.

    Raises:
        PoolError: the pool's file is wrong.
    """
    pool = load_pool(settings.models_file)
    keyless = missing_keys(pool)
    for spec in pool.models:
        what = f"model {spec.name}"
        if spec.name in keyless:
            yield Finding("wrong", what, keyless[spec.name], "Set it, or take the model out of the pool.")
        elif not _has_provider(spec):
            found = f"LiteLLM knows no provider for litellm_id '{spec.litellm_id}'"
            yield Finding("wrong", what, found, "Write PROVIDER/MODEL, e.g. openai/NAME or anthropic/NAME.")
        else:
            yield Finding("ok", what, _price_and_prior(pool, spec))
        if spec.since is not None and spec.since > utc_now().date():
            yield Finding(
                "warning",
                what,
                f"since ({spec.since}) is in the future: until then nothing is learnt of it",
                "Give the day on which this model came to stand behind the name.",
            )
        cached = spec.cached_input_usd_per_mtok
        if cached is not None and cached > spec.input_usd_per_mtok:
            yield Finding(
                "warning",
                what,
                f"cached_input_usd_per_mtok ({cached:g}) is above input_usd_per_mtok ({spec.input_usd_per_mtok:g})",
                "Correct the one that is wrong: what is cached costs less.",
            )


def _price_and_prior(pool: ModelPool, spec: ModelSpec) -> str:
    price = f"${spec.input_usd_per_mtok:.2f} in, ${spec.output_usd_per_mtok:.2f} out per million tokens"
    source = "what is published of it" if spec.name in pool.published else "its price"
    return f"{price}; expected score before its first attempt, by {source}: {pool.prior_score(spec.name):.2f}"


def _has_provider(spec: ModelSpec) -> bool:
    if spec.agent or "custom_llm_provider" in spec.extra:
        return True
    import sandbox.agent.quiet  # noqa: F401, I001  (before LiteLLM itself)
    import litellm

    try:
        litellm.get_llm_provider(spec.litellm_id, api_base=spec.api_base)
    except litellm.exceptions.BadRequestError:
        return False
    return True
