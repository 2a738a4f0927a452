"""The `logreg` voter's trained file: numbers and JSON in one .npz, nothing that runs when it is read."""

import json
import zipfile
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from routing.errors import TrainingError
from routing.features import METADATA

FORMAT = 1


@dataclass(frozen=True)
class HeldOut:
    """How the model did on tasks that it was not trained on, beside what needs no model: each model's own mean."""

    attempts: int
    accuracy: float
    majority_accuracy: float
    brier: float
    """Mean squared error of the probability, 0 is best (Brier 1950)."""
    majority_brier: float

    @property
    def skill(self) -> float:
        """Brier skill score: 1 is perfect, 0 no better than the majority, below 0 worse."""
        return 1 - self.brier / self.majority_brier if self.majority_brier > 0 else 0.0


@dataclass(frozen=True)
class LogregModel:
    """One logistic regression for each model of the pool that had enough attempts."""

    encoder: str
    dimensions: int
    models: tuple[str, ...]
    weights: NDArray[np.float64]
    """(models, dimensions + metadata)."""
    biases: NDArray[np.float64]
    """(models,)."""
    attempts: int
    held_out: HeldOut

    def probabilities(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return each model's probability of success, for one vector of features."""
        logits = np.clip(self.weights @ x + self.biases, -50, 50)
        result: NDArray[np.float64] = 1 / (1 + np.exp(-logits))
        return result


class _HeldOut(BaseModel):
    model_config = ConfigDict(extra="forbid")
    attempts: int
    accuracy: float
    majority_accuracy: float
    brier: float
    majority_brier: float


class _Meta(BaseModel):
    model_config = ConfigDict(extra="forbid")
    format: int
    encoder: str
    dimensions: int = Field(gt=0)
    models: list[str] = Field(min_length=1)
    features: list[str]
    attempts: int
    held_out: _HeldOut


def save(model: LogregModel, path: Path) -> None:
    meta = {
        "format": FORMAT,
        "encoder": model.encoder,
        "dimensions": model.dimensions,
        "models": list(model.models),
        "features": list(METADATA),
        "attempts": model.attempts,
        "held_out": asdict(model.held_out),
    }
    with path.open("wb") as file:
        np.savez(
            file,
            meta=np.frombuffer(json.dumps(meta).encode(), dtype=np.uint8),
            weights=model.weights,
            biases=model.biases,
        )


def load(path: Path) -> LogregModel:
    """Return the model in a file.

    Raises:
        TrainingError: it cannot be read, is no such file, or was made by a version with other features.
    """
    again = "Make it again with `acrouter train logreg`."
    try:
        with np.load(path, allow_pickle=False) as arrays:
            raw = json.loads(arrays["meta"].tobytes())
            weights, biases = arrays["weights"], arrays["biases"]
    except OSError as error:
        raise TrainingError(f"{path}: cannot be read: {error.strerror or error}.") from error
    except (KeyError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise TrainingError(f"{path}: is no file of the logreg voter. {again}") from error
    if not isinstance(raw, dict) or raw.get("format") != FORMAT:
        raise TrainingError(f"{path}: its format is not {FORMAT}. {again}")
    try:
        meta = _Meta.model_validate(raw)
    except ValidationError as error:
        raise TrainingError(f"{path}: is damaged ({error.error_count()} wrong values). {again}") from error
    if meta.features != list(METADATA):
        raise TrainingError(f"{path}: was trained on other features than this version has. {again}")
    shape = (len(meta.models), meta.dimensions + len(METADATA))
    if weights.shape != shape or biases.shape != shape[:1]:
        raise TrainingError(f"{path}: is damaged: weights {weights.shape}, expected {shape}. {again}")
    if not (np.isfinite(weights).all() and np.isfinite(biases).all()):
        raise TrainingError(f"{path}: is damaged: a weight is not a number. {again}")
    return LogregModel(
        meta.encoder,
        meta.dimensions,
        tuple(meta.models),
        weights.astype(np.float64),
        biases.astype(np.float64),
        meta.attempts,
        HeldOut(**meta.held_out.model_dump()),
    )
