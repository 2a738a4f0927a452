"""What is published of models before they are tried: leaderboard scores, each with its source, shipped as data.

Benchmarks differ in how hard they are and in how far they tell models apart: one that is nearly solved, or whose tasks
are either trivial or hopeless, puts all models within a few percent. So a model is placed among the others of the
profile, on each benchmark, in standard deviations (its logit less the benchmark's mean, over the benchmark's spread).
Its ability is the mean of these, shrunk as if one more benchmark had found it average, which is what benchmarks that
correlate with 0.5 among each other and with the work at hand amount to (Kelley 1947); times the typical spread of a
benchmark (root mean square). Every benchmark counts the same: weighing them by how many tasks they have foretells one
that is left out no better. `python -m bench.routing.published` tells how well each benchmark of the shipped profile is
foretold by the others.
"""

import json
import math
import re
import statistics
from collections import defaultdict
from collections.abc import Collection, Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, HttpUrl, ValidationError, model_validator

from routing.errors import ProfileError
from routing.logits import logit
from store.suggest import explain

_SHIPPED = "published.json"
_SHRINK = 1.0
"""Benchmarks on which every model counts as average."""
_MAKERS = ("anthropic", "deepseek", "google", "minimax", "moonshot", "moonshotai", "nvidia", "openai", "qwen", "zai")
"""What Bedrock puts before a model's name, with a dot."""


class PublishedScore(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    benchmark: str = Field(min_length=1)
    score: float = Field(gt=0, lt=100)
    """In percent."""
    source: HttpUrl


class PublishedModel(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str = Field(min_length=1)
    also: tuple[str, ...] = ()
    """Names under which providers serve the same model."""
    scores: tuple[PublishedScore, ...] = Field(min_length=1)


class Profile(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    read: str
    """When the sources were read, as a date."""
    about: str = ""
    models: tuple[PublishedModel, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _one_entry_each(self) -> Self:
        seen: set[str] = set()
        for name in (name for entry in self.models for name in (entry.model, *entry.also)):
            if (plain := plain_name(name)) in seen:
                raise ValueError(f"the model '{name}' is there twice.")
            seen.add(plain)
        return self

    def logits(self) -> Mapping[str, Mapping[str, float]]:
        """Return the logits of the scores, by benchmark and the models' plain names."""
        found: defaultdict[str, dict[str, float]] = defaultdict(dict)
        for entry in self.models:
            for score in entry.scores:
                found[score.benchmark][plain_name(entry.model)] = logit(score.score / 100)
        return found

    def abilities(self, without: Collection[str] = ()) -> Mapping[str, float]:
        """Return each model's ability by its plain name: logits above or below the profile's average.

        Args:
            without: benchmarks that are left out. A model of which nothing else is published has no ability.
        """
        placed: defaultdict[str, list[float]] = defaultdict(list)
        spreads = []
        for benchmark, logits in self.logits().items():
            if benchmark in without:
                continue
            mean, spread = statistics.fmean(logits.values()), statistics.pstdev(logits.values())
            if not spread:  # it says nothing of who is better
                continue
            spreads.append(spread)
            for model, value in logits.items():
                placed[model].append((value - mean) / spread)
        typical = math.sqrt(statistics.fmean(spread**2 for spread in spreads)) if spreads else 0.0
        found = {model: typical * sum(places) / (len(places) + _SHRINK) for model, places in placed.items()}
        return found | {
            plain_name(name): found[plain_name(entry.model)]
            for entry in self.models
            for name in entry.also
            if plain_name(entry.model) in found
        }


def plain_name(name: str) -> str:
    """Return a model's name without provider, date and punctuation: `anthropic/claude-opus-4.6` is `claudeopus46`.

    So is Bedrock's `us.anthropic.claude-opus-4-6-20260205-v1:0`; Fireworks' `kimi-k2p5` is `kimi-k2.5`.
    """
    last = name.rsplit("/", 1)[-1].lower()
    last, of_bedrock = re.subn(rf"^(?:[a-z-]+\.)?(?:{'|'.join(_MAKERS)})\.", "", last)
    last = re.sub(r"-v\d+(?::\d+)?$" if of_bedrock else r"-v\d+:\d+$", "", last)
    last = re.sub(r"(?:-maas|-fp8|@default|:free|:thinking)$", "", last)
    last = re.sub(r"[-@](?:20\d{6}|latest|preview|20\d\d-\d\d-\d\d)$", "", last)
    last = re.sub(r"(?<=\d)p(?=\d)", "", last)
    return re.sub(r"[^a-z0-9]", "", last)


def load_profile(path: Path | None = None) -> Profile:
    """Read a profile, by default the shipped one.

    Raises:
        ProfileError: it cannot be read, or a key or a number in it is wrong; each mistake is one line that names it.
    """
    shown = str(path or _SHIPPED)
    try:
        source = path or resources.files("routing.profiles").joinpath(_SHIPPED)
        data: Any = json.loads(source.read_text(encoding="utf-8"))
    except OSError as error:
        raise ProfileError(f"{shown}: cannot be read: {error.strerror}.") from error
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ProfileError(f"{shown}: is not JSON.") from error
    if not isinstance(data, dict):
        raise ProfileError(f"{shown}: must be an object with 'read' and 'models'.")
    try:
        return Profile.model_validate(data)
    except ValidationError as error:
        raise ProfileError(explain(error, shown, Profile)) from error


@cache
def shipped_abilities(without: frozenset[str] = frozenset()) -> Mapping[str, float]:
    """Return the abilities of the shipped profile by plain name, some benchmarks left out."""
    return load_profile().abilities(without)


def published_ability(*names: str, without: Collection[str] = ()) -> float | None:
    """Return the ability of the first name that the shipped profile knows, some benchmarks left out, or None."""
    known = shipped_abilities(frozenset(without))
    return next((known[plain] for name in names if (plain := plain_name(name)) in known), None)
