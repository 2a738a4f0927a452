"""The first choice: the model with the best expected reward, or in part of the decisions the best of another scenario.

Exploration is Thompson sampling, held back: scenarios are drawn from what is believed, with a share of its standard
deviations, so that a model is tried while it may well be the best and hardly ever for curiosity alone. The scenarios
are a fixed set (`routing.scenarios`); one is drawn at random, so that the propensities are counted and exact.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from routing.escalation import Outlook
from routing.logits import Floats, logits, sigmoid
from routing.reward import RewardWeights
from routing.scenarios import SCENARIOS, standard

EXPLORATION = 0.5
"""Share of the standard deviations that exploration sees, where a task gets one attempt."""
EXPLORATION_WITH_MORE_STEPS = 0.25
"""The same where others may follow: those are seen anyway. Both were chosen on drawn streams (`bench.routing`)."""


@dataclass(frozen=True)
class Draw:
    """The first choice, and the probability of each model to be it; they sum to 1."""

    first: str
    propensities: Mapping[str, float]
    favourite: str
    """What would be chosen without exploration."""
    scenario: int | None = None
    """Which one was drawn; None: none was."""


def draw(
    names: Sequence[str],
    values: Floats,
    *,
    shifts: Floats | None = None,
    rng: np.random.Generator,
) -> Draw:
    """Return the first choice among models.

    Args:
        names: the models; of equal ones the first is taken.
        values: (M,) expected reward of trying each first.
        shifts: (SCENARIOS, M) what each scenario adds to these; None: no exploration.
        rng: draws the scenario.
    """
    favourite = names[int(np.argmax(values))]
    if shifts is None:
        return Draw(favourite, {name: float(name == favourite) for name in names}, favourite)
    winners = np.argmax(values + shifts, axis=1)
    counts = np.bincount(winners, minlength=len(names)) / SCENARIOS
    scenario = int(rng.integers(SCENARIOS))
    return Draw(names[int(winners[scenario])], dict(zip(names, counts.tolist(), strict=True)), favourite, scenario)


def scenario_shifts(view: Outlook, deviations: Floats, losses: Floats, *, steps: int, weights: RewardWeights) -> Floats:
    """Return what (SCENARIOS, M) scenarios add to the expected rewards of trying each of M models first.

    With further steps left, the value of going on after a failure is looked at one step ahead.
    """
    now = view.chances @ view.weights
    scores = scenario_scores(now, deviations, steps)
    return _values(view, scores, losses, steps, weights) - _values(view, now[None, :], losses, steps, weights)


def scenario_scores(scores: Floats, deviations: Floats, steps: int) -> Floats:
    """Return the (SCENARIOS, M) expected scores of M models in each scenario, for `steps` attempts at most."""
    share = EXPLORATION if steps == 1 else EXPLORATION_WITH_MORE_STEPS
    found: Floats = sigmoid(logits(scores) + share * deviations * standard(len(scores)))
    return found


def _values(view: Outlook, scores: Floats, losses: Floats, steps: int, weights: RewardWeights) -> Floats:
    gain = weights.score * (1 - view.best_score)
    values: Floats = gain * scores - losses
    if steps <= 1 or scores.shape[1] == 1:
        return values
    now = view.chances @ view.weights
    missed = 1 - view.passes
    left = missed @ view.weights  # (M,) chance that the next attempt is reached at all
    both = (missed * view.weights) @ view.chances.T  # (first, next): next succeeds after first did not pass
    drop = both / np.maximum(left[:, None] * now[None, :], 1e-9)
    after = gain * scores[:, None, :] * drop[None, :, :] - losses
    after[:, np.arange(len(now)), np.arange(len(now))] = 0.0
    following: Floats = np.maximum(after.max(axis=2), 0.0)
    return values + left * following
