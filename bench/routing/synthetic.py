"""Streams that nobody has seen: random pools and tasks with known properties, for tests of robustness.

A model's chance on a task is the logistic of its ability, its bent for the task's kind, and the task's difficulty,
which all models share: so failures are correlated. Words of a text tell the kind, and with some noise the difficulty.
Prices follow ability loosely, as on the market. Everything is drawn from the seed.
"""

from dataclasses import dataclass

import numpy as np

from bench.routing.stream import Stream, StreamKind, StreamTask
from routing.pool import PRIOR_TOKENS_IN, PRIOR_TOKENS_OUT, ModelPool, ModelSpec
from routing.types import Dimension

KINDS = (Dimension.BUG_FIXING, Dimension.CODE_GENERATION, Dimension.TEST_GENERATION, Dimension.CODE_REFACTORING)
SUBJECTS = ("parser", "calendar", "session", "renderer", "scheduler", "encoder", "migration", "checkout")
_HARD = ("deadlock", "concurrency", "rewrite", "architecture", "distributed", "numerical")
_EASY = ("typo", "docstring", "rename", "default", "message", "import")


@dataclass(frozen=True)
class Recipe:
    """How a synthetic stream is drawn. Spreads are standard deviations of logits."""

    models: int = 6
    tasks: int = 200
    ability_mean: float = 0.2
    ability_spread: float = 1.0
    difficulty_spread: float = 1.5
    bent_spread: float = 0.5
    dearest_usd: float = 1.0
    """Cost of an attempt of the dearest model; the cheapest costs a two-hundredth of it."""
    false_pass: float = 0.4
    """How often a wrong patch applies."""
    better_from: int = 0
    """From this task on the model called RISER, the worst until then, solves nearly everything; 0: never."""


RECIPES = {
    "mixed": Recipe(),
    "correlated": Recipe(difficulty_spread=3.0),
    "independent": Recipe(difficulty_spread=0.3, bent_spread=1.0),
    "cheap": Recipe(models=8, dearest_usd=0.05),
    "dear": Recipe(models=4, dearest_usd=4.0),
}
DRIFT = Recipe(models=5, tasks=400, better_from=150)
"""A model that gets much better in mid-stream."""
RISER = "riser"
"""Its name."""


def synthetic_stream(name: str, recipe: Recipe, seed: int) -> Stream:
    """Draw a stream of a recipe."""
    rng = np.random.default_rng([seed, 99])
    abilities = rng.normal(recipe.ability_mean, recipe.ability_spread, recipe.models)
    # What the market asks follows ability with a good deal of noise.
    rank = np.argsort(np.argsort(abilities + rng.normal(0, recipe.ability_spread, recipe.models)))
    mean_usd = recipe.dearest_usd * 200.0 ** (rank / max(recipe.models - 1, 1) - 1.0)
    kinds = rng.integers(len(KINDS), size=recipe.tasks)
    difficulty = rng.normal(0, recipe.difficulty_spread, recipe.tasks)
    bents = rng.normal(0, recipe.bent_spread, (len(KINDS), recipe.models))
    logits = abilities[None, :] + bents[kinds] - difficulty[:, None]
    riser = int(np.argsort(abilities)[0]) if recipe.better_from else None
    if riser is not None:
        logits[recipe.better_from :, riser] = 4.0
    resolved = (rng.random(logits.shape) < 1 / (1 + np.exp(-logits))).astype(float)
    passes = np.maximum(resolved, rng.random(resolved.shape) < recipe.false_pass)
    usd = mean_usd[None, :] * rng.lognormal(-0.125, 0.5, resolved.shape)
    specs = [
        spec(RISER if number == riser else f"m{number}", cost * rng.lognormal(0, 0.4))
        for number, cost in enumerate(mean_usd)
    ]
    tasks = tuple(
        StreamTask(text(rng, KINDS[kind], hardness), KINDS[kind])
        for kind, hardness in zip(kinds, difficulty, strict=True)
    )
    every = np.ones_like(resolved, dtype=bool)
    what = StreamKind.DRAWN if riser is None else StreamKind.DRIFT
    return Stream(name, tasks, ModelPool(tuple(specs)), resolved, passes, usd, every, every, kind=what)


def spec(name: str, cost_usd: float) -> ModelSpec:
    """Return a model whose attempts cost this by its price: an output token costs five times an input token."""
    price = 1e6 * cost_usd / (PRIOR_TOKENS_IN + 5 * PRIOR_TOKENS_OUT)
    return ModelSpec(name=name, litellm_id=f"synthetic/{name}", input_usd_per_mtok=price, output_usd_per_mtok=5 * price)


def text(rng: np.random.Generator, kind: Dimension, difficulty: float, subject: str | None = None) -> str:
    """Draw a task's text: its words tell the kind, the subject (None: any) and, with some noise, the difficulty."""
    told = difficulty + rng.normal(0, 1.0)
    words = _HARD if told > 0 else _EASY
    subject = subject or SUBJECTS[int(rng.integers(len(SUBJECTS)))]
    said = [str(kind).replace("_", " "), subject, *rng.choice(words, size=2, replace=False)]
    return f"{' '.join(said)} in the {subject} module"
