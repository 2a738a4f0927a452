"""Turns votes into a first choice, and says with what probability each model would have been it."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from routing.types import Pool, Vote

_MOST_COMBINATIONS = 4096


@dataclass(frozen=True)
class Draw:
    """The weighted votes after the draw."""

    totals: Mapping[str, float]
    """Shares that sum to 1."""
    first: str
    propensities: Mapping[str, float]
    """Probability of each model to come first, over all that could have been drawn; they sum to 1."""
    votes: tuple[Vote, ...]


def draw(votes: Sequence[Vote], pool: Pool, rng: np.random.Generator, *, explore: bool) -> Draw:
    """Add up weight x confidence x share, drawing one model for each randomised vote.

    The propensities are exact: every combination of draws is gone through with its probability. Without `explore`
    randomised votes count by their shares and nothing is drawn. Equal totals go to the cheaper model, then by name.
    """
    order = sorted(pool.names, key=lambda name: (pool.expected_cost_usd(name), name))
    drawn = _randomised(votes, len(order)) if explore else []
    fixed = np.zeros(len(order))
    for position, vote in enumerate(votes):
        if position not in drawn and not vote.abstains:
            fixed += _mass(vote) * _shares(vote, order)
    chances = [_normalised(_shares(votes[position], order)) for position in drawn]
    masses = [_mass(votes[position]) for position in drawn]
    propensities = np.zeros(len(order))
    for picks in itertools.product(range(len(order)), repeat=len(drawn)):
        probability = float(np.prod([chance[pick] for chance, pick in zip(chances, picks, strict=True)]))
        if probability > 0:
            propensities[int(np.argmax(_with_picks(fixed, masses, picks)))] += probability
    picks = tuple(int(rng.choice(len(order), p=chance)) for chance in chances)
    totals = _with_picks(fixed, masses, picks)
    first = order[int(np.argmax(totals))]
    told = list(votes)
    for position, pick in zip(drawn, picks, strict=True):
        told[position] = replace(told[position], drawn=order[pick])
    whole = float(totals.sum())
    shares = totals / whole if whole > 0 else np.full(len(order), 1 / len(order))
    return Draw(
        totals=dict(zip(order, shares.tolist(), strict=True)),
        first=first,
        propensities=dict(zip(order, (propensities / propensities.sum()).tolist(), strict=True)),
        votes=tuple(told),
    )


def _randomised(votes: Sequence[Vote], models: int) -> list[int]:
    """Positions of the votes to draw from: as many as can be gone through, the others count by their shares."""
    positions = [p for p, vote in enumerate(votes) if vote.randomised and not vote.abstains and _mass(vote) > 0]
    while models ** len(positions) > _MOST_COMBINATIONS and len(positions) > 1:
        positions.pop()
    return positions


def _mass(vote: Vote) -> float:
    return vote.weight * vote.confidence


def _shares(vote: Vote, order: Sequence[str]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.array([vote.shares.get(name, 0.0) for name in order])


def _normalised(
    shares: np.ndarray[tuple[int], np.dtype[np.float64]],
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    normalised: np.ndarray[tuple[int], np.dtype[np.float64]] = shares / shares.sum()
    return normalised


def _with_picks(
    fixed: np.ndarray[tuple[int], np.dtype[np.float64]], masses: Sequence[float], picks: Sequence[int]
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    totals = fixed.copy()
    for mass, pick in zip(masses, picks, strict=True):
        totals[pick] += mass
    return totals
