"""Which scripted models there are, what they cost, and the pool file that offers them."""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import yaml

Manner = Literal["skilled", "empty", "loop", "garbage", "dead"]
"""skilled: does with each bug what the catalogue says of it. empty: hands in no change. loop: never ends. garbage:
never calls the tool. dead: answers every request with HTTP 500."""


@dataclass(frozen=True)
class ScriptedModel:
    """One scripted model; prices in USD per million tokens, of the size that paid models of its class have."""

    name: str
    manner: Manner
    input_usd_per_mtok: float
    output_usd_per_mtok: float


SCRIPTED_MODELS = (
    ScriptedModel("scripted-small", "skilled", 0.15, 0.60),
    ScriptedModel("scripted-medium", "skilled", 0.80, 3.20),
    ScriptedModel("scripted-large", "skilled", 10.00, 50.00),
    ScriptedModel("scripted-empty", "empty", 0.15, 0.60),
    ScriptedModel("scripted-loop", "loop", 0.15, 0.60),
    ScriptedModel("scripted-garbage", "garbage", 0.15, 0.60),
    ScriptedModel("scripted-dead", "dead", 0.15, 0.60),
)
SKILLED = tuple(model.name for model in SCRIPTED_MODELS if model.manner == "skilled")


def write_models_file(
    path: Path,
    *,
    api_base: str,
    api_key_env: str = "",
    api_key_file: Path | None = None,
    only: Collection[str] = SKILLED,
) -> None:
    """Write a pool of scripted models in the order of their prices.

    The key itself is never written: the pool names the environment variable or the file that holds it.

    Raises:
        ValueError: `only` names a model that does not exist, or neither or both of the key's places are given.
    """
    if unknown := sorted(set(only) - {model.name for model in SCRIPTED_MODELS}):
        raise ValueError(f"there is no scripted model named {', '.join(unknown)}")
    if bool(api_key_env) == bool(api_key_file):
        raise ValueError("give the key's place as api_key_env or as api_key_file")
    key = {"api_key_env": api_key_env} if api_key_env else {"api_key_file": str(api_key_file)}
    entries = [
        {
            "name": model.name,
            "litellm_id": f"openai/{model.name}",
            "input_usd_per_mtok": model.input_usd_per_mtok,
            "output_usd_per_mtok": model.output_usd_per_mtok,
            "context_tokens": 128_000,
            "max_output_tokens": 4096,
            "api_base": api_base,
            **key,
            "scripted": True,
        }
        for model in SCRIPTED_MODELS
        if model.name in only
    ]
    header = "# Scripted models of the demo: they follow a fixed script and cost nothing; the prices are for show.\n"
    path.write_text(header + yaml.safe_dump({"models": entries}, sort_keys=False), encoding="utf-8")
