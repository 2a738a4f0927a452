"""What is published of models before they are tried: leaderboard scores, each with its source, shipped as data.

Benchmarks differ in how hard they are, so a model is placed among the others of the profile: its ability is the mean
of its logits on each benchmark less the benchmark's own mean, shrunk as if one more benchmark had found it average.
"""

import json
import re
from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, HttpUrl, ValidationError

from routing.errors import ProfileError
from routing.logits import logit
from store.suggest import explain

_SHIPPED = "published.json"
_SHRINK = 1.0
"""Benchmarks on which every model counts as average."""


class PublishedScore(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    benchmark: str = Field(min_length=1)
    score: float = Field(gt=0, lt=100)
    """In percent."""
    source: HttpUrl


class PublishedModel(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str = Field(min_length=1)
    scores: tuple[PublishedScore, ...] = Field(min_length=1)


class Profile(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    read: str
    """When the sources were read, as a date."""
    about: str = ""
    models: tuple[PublishedModel, ...] = Field(min_length=1)

    def abilities(self) -> Mapping[str, float]:
        """Return each model's ability by its plain name: logits above or below the profile's average."""
        by_benchmark: defaultdict[str, list[float]] = defaultdict(list)
        for entry in self.models:
            for score in entry.scores:
                by_benchmark[score.benchmark].append(logit(score.score / 100))
        means = {name: sum(values) / len(values) for name, values in by_benchmark.items()}
        return {
            plain_name(entry.model): sum(logit(s.score / 100) - means[s.benchmark] for s in entry.scores)
            / (len(entry.scores) + _SHRINK)
            for entry in self.models
        }


def plain_name(name: str) -> str:
    """Return a model's name without provider, date and punctuation: `anthropic/claude-opus-4.6` is `claudeopus46`."""
    last = name.rsplit("/", 1)[-1].lower()
    last = re.sub(r"[-@](?:20\d{6}|latest|preview|20\d\d-\d\d-\d\d)$", "", last)
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
def shipped_abilities() -> Mapping[str, float]:
    """Return the abilities of the shipped profile by plain name."""
    return load_profile().abilities()


def published_ability(*names: str) -> float | None:
    """Return the ability of the first name that the shipped profile knows, or None."""
    known = shipped_abilities()
    return next((known[plain] for name in names if (plain := plain_name(name)) in known), None)
