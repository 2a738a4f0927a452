"""Trains the `logreg` voter's file with scikit-learn (the extra `train`), and measures it on held-out tasks."""

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from routing.encoders import embedding_text
from routing.errors import TrainingError
from routing.features import features
from routing.logreg_file import HeldOut, LogregModel
from routing.training.examples import SOLVED, Example
from routing.types import Encoder, RoutingTask

MIN_ATTEMPTS = 20
"""Of a model; with fewer its own mean says as much."""
HELD_OUT = 0.25
"""Part of the tasks that the report is measured on."""
_STRENGTHS = (0.1, 1.0, 10.0, 100.0)
"""Inverse regularisation, chosen by cross-validation within the training part."""
_FOLDS = 3
_BATCH = 64


@dataclass(frozen=True)
class _Data:
    x: NDArray[np.float64]
    tasks: tuple[Example, ...]


def train(examples: Sequence[Example], encoder: Encoder, *, seed: int = 0) -> LogregModel:
    """Return a model trained on all examples, with a report of one trained on three quarters of the tasks.

    Raises:
        TrainingError: scikit-learn is not installed, or fewer than two models have `MIN_ATTEMPTS` with a success and a
            failure in both parts.
    """
    try:
        import sklearn.linear_model  # noqa: F401
    except ImportError as error:
        raise TrainingError(
            "train logreg: scikit-learn is missing. Run in acrouter's folder: .venv/bin/pip install '.[train]'"
        ) from error
    data = _prepared(examples, encoder)
    order = random.Random(seed).sample(range(len(data.tasks)), len(data.tasks))  # noqa: S311
    cut = round(len(order) * HELD_OUT)
    held_out, training = sorted(order[:cut]), sorted(order[cut:])
    models = _trainable(data, training)
    if len(models) < 2:
        counts = Counter(model for task in data.tasks for model in task.results)
        told = ", ".join(f"{model} {count}" for model, count in counts.most_common()) or "none"
        raise TrainingError(
            f"train logreg: at least two models need {MIN_ATTEMPTS} attempts with {_FOLDS} successes and "
            f"{_FOLDS} failures or more among three quarters of the tasks. Attempts: {told}."
        )
    report = _measured(data, models, training, held_out)
    fitted = {model: _fit(data, model, range(len(data.tasks))) for model in models}
    return LogregModel(
        encoder=encoder.name,
        dimensions=encoder.dimensions,
        models=tuple(models),
        weights=np.array([weights for weights, _ in fitted.values()]),
        biases=np.array([bias for _, bias in fitted.values()]),
        attempts=sum(model in task.results for task in data.tasks for model in models),
        held_out=report,
    )


def _prepared(examples: Sequence[Example], encoder: Encoder) -> _Data:
    words = [embedding_text(e.title, e.text) for e in examples]
    rows = []
    for start in range(0, len(words), _BATCH):
        vectors = encoder.encode(words[start : start + _BATCH])
        for example, vector in zip(examples[start : start + _BATCH], vectors, strict=True):
            task = RoutingTask(
                example.key, example.text, example.dimension, example.repository, example.language, example.title
            )
            rows.append(features(replace(task, embedding=vector), encoder.dimensions))
    return _Data(np.array(rows), tuple(examples))


def _trainable(data: _Data, rows: Sequence[int]) -> list[str]:
    attempts: Counter[str] = Counter()
    successes: Counter[str] = Counter()
    for row in rows:
        for model, result in data.tasks[row].results.items():
            attempts[model] += 1
            successes[model] += result.score >= SOLVED
    return sorted(
        model
        for model, count in attempts.items()
        if count >= MIN_ATTEMPTS and _FOLDS <= successes[model] <= count - _FOLDS
    )


def _fit(data: _Data, model: str, rows: Sequence[int]) -> tuple[NDArray[np.float64], float]:
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV, StratifiedKFold

    mine = [row for row in rows if model in data.tasks[row].results]
    y = np.array([data.tasks[row].results[model].score >= SOLVED for row in mine])
    folds = StratifiedKFold(_FOLDS, shuffle=True, random_state=0)
    search = GridSearchCV(
        LogisticRegression(max_iter=1000), {"C": list(_STRENGTHS)}, scoring="neg_brier_score", cv=folds
    )
    best = search.fit(data.x[mine], y).best_estimator_
    return best.coef_[0], float(best.intercept_[0])


def _measured(data: _Data, models: Sequence[str], training: Sequence[int], held_out: Sequence[int]) -> HeldOut:
    truth: list[float] = []
    guesses: list[float] = []
    means: list[float] = []
    for model in models:
        weights, bias = _fit(data, model, training)
        seen = [data.tasks[row].results[model].score >= SOLVED for row in training if model in data.tasks[row].results]
        rows = [row for row in held_out if model in data.tasks[row].results]
        truth += [float(data.tasks[row].results[model].score >= SOLVED) for row in rows]
        guesses += (1 / (1 + np.exp(-np.clip(data.x[rows] @ weights + bias, -50, 50)))).tolist() if rows else []
        means += [float(np.mean(seen))] * len(rows)
    if not truth:
        raise TrainingError("train logreg: no attempt is left to measure the model on. Give more tasks.")
    y, p, m = np.array(truth), np.array(guesses), np.array(means)
    return HeldOut(
        attempts=len(y),
        accuracy=float(np.mean((p >= 0.5) == y)),
        majority_accuracy=float(np.mean((m >= 0.5) == y)),
        brier=float(np.mean((p - y) ** 2)),
        majority_brier=float(np.mean((m - y) ** 2)),
    )
