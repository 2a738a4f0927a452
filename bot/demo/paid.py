"""The pool file for `acrouter demo --model NAME`: one paid model, with LiteLLM's published prices."""

from pathlib import Path

import yaml

from store.errors import ConfigurationError


def write_paid_models_file(path: Path, model: str) -> None:
    """Write a pool of one paid model; its key stays in the environment, where LiteLLM finds it.

    Raises:
        ConfigurationError: LiteLLM does not know the model or its price, or the key is not set.
    """
    import litellm

    try:
        info = litellm.get_model_info(model)
    except Exception as error:
        raise ConfigurationError(
            f"--model: LiteLLM does not know '{model}' and its price. Use a name from "
            "https://models.litellm.ai, such as anthropic/claude-sonnet-4-5."
        ) from error
    price_in, price_out = info.get("input_cost_per_token") or 0.0, info.get("output_cost_per_token") or 0.0
    if not price_in or not price_out:
        raise ConfigurationError(f"--model: LiteLLM knows no price for '{model}', and a model without one is not used.")
    needed = litellm.validate_environment(model)
    if not needed["keys_in_environment"]:
        raise ConfigurationError(
            f"--model: '{model}' needs {' and '.join(needed['missing_keys']) or 'an API key'} in the environment."
        )
    entry = {
        "name": model,
        "litellm_id": model,
        "input_usd_per_mtok": price_in * 1_000_000,
        "output_usd_per_mtok": price_out * 1_000_000,
        "context_tokens": info.get("max_input_tokens") or 128_000,
        "max_output_tokens": min(info.get("max_output_tokens") or 4096, 8192),
    }
    path.write_text(yaml.safe_dump({"models": [entry]}, sort_keys=False), encoding="utf-8")
