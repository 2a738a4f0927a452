"""The pool: the models that may be chosen, with their prices, read from models.yaml."""

import os
import re
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from routing.errors import PoolError
from routing.priors import market_priors
from routing.profile import published_ability
from store.suggest import did_you_mean, explain
from store.yaml_keys import doubled_key

# An attempt before any was seen: mini-swe-agent sends its growing history again with each step. A documented guess,
# outvoted by the first real attempts of a model.
PRIOR_TOKENS_IN = 150_000
PRIOR_TOKENS_OUT = 8_000

# In USD per million tokens. No provider asks less or more; a price for one token is below, and one that was multiplied
# twice above. Caps would count a millionth of what is paid.
_LEAST_PRICE = 0.001
_MOST_PRICE = 10_000

_KEYS_ELSEWHERE = (
    "a key does not belong in this file. Put it into an environment variable and name that with 'api_key_env', "
    "or into a file and name that with 'api_key_file'"
)
_PROGRAMS_REACH = ("openai/", "anthropic/")
_SECRET_NAMES = ("api_key", "key", "token", "secret", "password", "authorization")


class ProgramSpec(BaseModel):
    """A command line agent of the sandbox's image. `{url}`, `{model}` and `{prompt}` are filled in both fields."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    command: str = Field(min_length=1)
    environment: dict[str, str] = Field(default_factory=dict)


class ModelSpec(BaseModel):
    """One model of the pool. Prices are in USD per million tokens."""

    # What was given may hold a key in the wrong place, and errors end in logs.
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:/-]{0,99}$")
    """What people call it: in `/route fix --model NAME`, in comments, in the tables."""
    litellm_id: str = Field(min_length=1)
    input_usd_per_mtok: float = Field(ge=0, allow_inf_nan=False)
    output_usd_per_mtok: float = Field(ge=0, allow_inf_nan=False)
    cached_input_usd_per_mtok: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    free: bool = False
    """Must be said of a model whose prices are all 0: a forgotten price is not a free model."""
    context_tokens: int = Field(default=128_000, gt=0)
    max_output_tokens: int = Field(default=4096, gt=0)
    api_base: str | None = None
    api_key_env: str | None = Field(default=None, min_length=1)
    api_key_file: Path | None = None
    extra: dict[str, Any] = Field(default_factory=dict)
    """Further arguments of `litellm.completion`, e.g. temperature."""
    agent: ProgramSpec | None = None
    """The program that works with this model; None: mini-swe-agent."""
    since: date | None = None
    """The day (UTC) from which the name stands for this model: what was attempted before says nothing of it."""
    enabled: bool = True
    scripted: bool = False
    """Its answers are prepared and it is labelled so wherever it shows: for demonstrations and tests."""

    @model_validator(mode="before")
    @classmethod
    def _no_inline_key(cls, data: Any) -> Any:
        if isinstance(data, dict) and "api_key" in data:
            raise ValueError(f"'api_key': {_KEYS_ELSEWHERE}.")
        return data

    @field_validator("extra")
    @classmethod
    def _no_key_in_extra(cls, value: dict[str, Any]) -> dict[str, Any]:
        if found := _secret_in(value):
            raise ValueError(f"'{found}': {_KEYS_ELSEWHERE}.")
        return value

    @field_validator("api_base")
    @classmethod
    def _an_address(cls, value: str | None) -> str | None:
        if value is not None and (urlsplit(value).scheme not in ("http", "https") or not urlsplit(value).hostname):
            raise ValueError("is no address. Write http://HOST:PORT/v1 or https://HOST/v1.")
        return value

    @field_validator("since", mode="before")
    @classmethod
    def _day(cls, value: Any) -> Any:
        if isinstance(value, str):
            with suppress(ValueError):
                return date.fromisoformat(value)
        if value is not None and type(value) is not date:
            raise ValueError("give a day, as in 'since: 2026-11-24'.")
        return value

    @model_validator(mode="after")
    def _priced(self) -> Self:
        prices = (self.input_usd_per_mtok, self.output_usd_per_mtok, self.cached_input_usd_per_mtok or 0.0)
        if not any(prices) and not self.free:
            raise ValueError("all prices are 0. Give the real ones, or say 'free: true'.")
        if any(prices) and self.free:
            raise ValueError("'free: true' and a price above 0 contradict each other. Remove one.")
        if self.api_key_env and self.api_key_file:
            raise ValueError("both 'api_key_env' and 'api_key_file' are given. Keep one.")
        if self.max_output_tokens > self.context_tokens:
            raise ValueError("'max_output_tokens' is larger than 'context_tokens'.")
        return self

    @model_validator(mode="after")
    def _reachable_by_a_program(self) -> Self:
        if self.agent and not self.api_base and not self.litellm_id.startswith(_PROGRAMS_REACH):
            raise ValueError(
                "'agent' works with OpenAI's and Anthropic's own models, or with a server that 'api_base' names. "
                f"Add that, or begin 'litellm_id' with {' or '.join(_PROGRAMS_REACH)}."
            )
        return self

    @property
    def prior_cost_usd(self) -> float:
        """What an attempt is expected to cost before any was seen."""
        return (PRIOR_TOKENS_IN * self.input_usd_per_mtok + PRIOR_TOKENS_OUT * self.output_usd_per_mtok) / 1_000_000


class _PoolFile(BaseModel):
    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    models: list[ModelSpec] = Field(min_length=1)


@dataclass(frozen=True)
class ModelPool:
    """Models in the order of the file. Fulfils the Protocol `Pool` with costs by price alone."""

    models: tuple[ModelSpec, ...]
    without_benchmarks: tuple[str, ...] = ()
    """Benchmarks of the shipped profile that priors may not know: the bench plays on what they were measured on."""

    def __post_init__(self) -> None:
        if not self.models:
            raise PoolError("pool: there is no model in it. Add one, or set 'enabled: true'.")
        seen: set[str] = set()
        for spec in self.models:
            if spec.name in seen:
                raise PoolError(f"pool: '{spec.name}' is there twice. Give each model a name of its own.")
            seen.add(spec.name)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(spec.name for spec in self.models)

    def get(self, name: str) -> ModelSpec:
        """Return a model by its name.

        Raises:
            PoolError: there is no such model; the message suggests the closest.
        """
        for spec in self.models:
            if spec.name == name:
                return spec
        raise PoolError(
            f"unknown model '{name}'.{did_you_mean(name, self.names)} The pool has: {', '.join(self.names)}."
        )

    def stood_for(self, name: str, moment: datetime) -> str:
        """Return what a model's name stood for at a moment: the name itself, or that of one which has left the pool."""
        since = self._since.get(name)
        return name if since is None or moment.astimezone(UTC).date() >= since else f"{name} before {since}"

    @cached_property
    def _since(self) -> dict[str, date]:
        return {spec.name: spec.since for spec in self.models if spec.since is not None}

    def only(self, allow: Collection[str] | None = None, deny: Collection[str] = ()) -> "ModelPool":
        """Return the pool without the denied models and, where `allow` is given, without any that it lacks.

        Raises:
            PoolError: a name is unknown, or nothing is left.
        """
        for name in (*(allow or ()), *deny):
            self.get(name)
        left = tuple(s for s in self.models if (allow is None or s.name in allow) and s.name not in deny)
        if not left:
            raise PoolError("pool: the allow and deny lists leave no model. Allow at least one.")
        return replace(self, models=left)

    def expected_cost_usd(self, model: str) -> float:
        """Return what an attempt is expected to cost, by its price and the prior number of tokens."""
        return self.get(model).prior_cost_usd

    def prior_cost_usd(self, model: str) -> float:
        """Return the same: this pool has seen no attempt."""
        return self.get(model).prior_cost_usd

    @cached_property
    def priors(self) -> dict[str, float]:
        """Expected scores before any attempt, by name; a profile may know a model by its provider's name or its own."""
        return market_priors(
            {s.name: (s.prior_cost_usd, (s.litellm_id, s.name)) for s in self.models}, without=self.without_benchmarks
        )

    def prior_score(self, model: str) -> float:
        """Return what a model is expected to score before any of its attempts was seen."""
        return self.priors[self.get(model).name]

    @cached_property
    def published(self) -> frozenset[str]:
        """The models of which something is published. Of the others their price alone says what to expect."""
        return frozenset(
            spec.name
            for spec in self.models
            if published_ability(spec.litellm_id, spec.name, without=self.without_benchmarks) is not None
        )


def load_pool(path: Path | str) -> ModelPool:
    """Read the enabled models of a YAML file `models: [{name, litellm_id, input_usd_per_mtok, ...}, ...]`.

    Raises:
        PoolError: the file, an entry or a key is wrong; each mistake is one line that names it.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
        root, data = yaml.compose(text, Loader=yaml.SafeLoader), yaml.safe_load(text)
        doubled = doubled_key(root) if root is not None else None
    except OSError as error:
        raise PoolError(
            f"{path}: cannot be read: {error.strerror}. Copy models.example.yaml there and edit it."
        ) from error
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise PoolError(f"{path}: is not YAML{_where(error)}.") from error
    except ValueError as error:  # of a date or a number that cannot be
        raise PoolError(f"{path}: is not YAML: {error}.") from error
    if doubled is not None:
        line = doubled.start_mark.line + 1
        raise PoolError(f"{path}: line {line}: the key '{doubled.value[:100]}' stands here twice. Keep one.")
    if not isinstance(data, dict):
        raise PoolError(f"{path}: must be a mapping with the key 'models'.")
    try:
        file = _PoolFile.model_validate(data)
    except ValidationError as error:
        raise PoolError(_named(explain(error, str(path), _PoolFile), data)) from error
    enabled = tuple(spec for spec in file.models if spec.enabled)
    if not enabled:
        raise PoolError(f"{path}: every model has 'enabled: false'. Enable at least one.")
    for position, spec in enumerate(file.models):
        if spec.name in [other.name for other in file.models[:position]]:
            raise PoolError(f"{path}: models.{position} ({spec.name}): the name is there twice.")
        for price in (spec.input_usd_per_mtok, spec.output_usd_per_mtok, spec.cached_input_usd_per_mtok or 0.0):
            if 0 < price < _LEAST_PRICE or price > _MOST_PRICE:
                raise PoolError(
                    f"{path}: models.{position} ({spec.name}): {price:g} is no price per million tokens. Give USD per "
                    "million: what a provider asks for one token times 1,000,000."
                )
    return ModelPool(enabled)


def resolve_key(spec: ModelSpec, environment: Mapping[str, str] | None = None) -> str | None:
    """Return the model's key, read now from where its entry says, or None where it says nothing.

    Raises:
        PoolError: the variable is not set, or the file cannot be read or is empty.
    """
    environment = os.environ if environment is None else environment
    if spec.api_key_env:
        value = environment.get(spec.api_key_env, "").strip()
        if not value:
            raise PoolError(f"model '{spec.name}': the environment variable {spec.api_key_env} is not set.")
        return value
    if spec.api_key_file:
        try:
            value = spec.api_key_file.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise PoolError(f"model '{spec.name}': cannot read its key from {spec.api_key_file}.") from error
        if not value:
            raise PoolError(f"model '{spec.name}': the key file {spec.api_key_file} is empty.")
        return value
    return None


def _secret_in(value: Any) -> str | None:
    """Return the first key of nested mappings that looks like it holds a credential."""
    if isinstance(value, dict):
        for key, inner in value.items():
            plain = str(key).lower().replace("-", "_")
            if plain in _SECRET_NAMES or plain.endswith(("_key", "_token", "_secret")):
                return str(key)
            if found := _secret_in(inner):
                return found
    return next(filter(None, map(_secret_in, value)), None) if isinstance(value, list) else None


def _named(text: str, data: dict[str, Any]) -> str:
    """Add each entry's name behind its position: people look for names, not for indexes."""
    entries = data.get("models")
    if not isinstance(entries, list):
        return text

    def with_name(match: re.Match[str]) -> str:
        entry = entries[int(match[1])]
        name = entry.get("name") if isinstance(entry, dict) else None
        return f"{match[0]} ({name[:100]})" if isinstance(name, str) else match[0]

    return re.sub(r": models\.(\d+)", with_name, text)


def _where(error: Exception) -> str:
    """Say where the YAML is wrong, without the line itself: it may hold what should be secret."""
    mark = getattr(error, "problem_mark", None)
    return f" (line {mark.line + 1}, column {mark.column + 1})" if mark else ""
