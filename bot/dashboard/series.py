"""Spend and success per model over time."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bot.dashboard import verdicts
from bot.dashboard.facts import DAY_S, Facts, Ints
from bot.dashboard.periods import Period
from bot.dashboard.stats import MICROS

_WEEKS_FROM_DAYS = 60


@dataclass(frozen=True)
class Series:
    """Per model: one number a bucket of days."""

    starts: tuple[int, ...]
    """First day of each bucket, since 1970."""
    days: int
    spend_usd: dict[str, tuple[float, ...]]
    success: dict[str, tuple[float | None, ...]]
    """Of the seven days up to each bucket's end; None where they have no decided attempt."""
    attempts: dict[str, tuple[int, ...]]


def series(facts: Facts, period: Period, models: Sequence[str]) -> Series:
    """Return spend and success over time: by day, or by week where the period is long."""
    days = 7 if period.days > _WEEKS_FROM_DAYS else 1
    # The last bucket ends today; a first one that would be shorter is filled from before.
    count = -(-period.days // days)
    start = period.last + 1 - count * days
    starts = tuple(start + days * number for number in range(count))
    won, lost = verdicts.won_attempts(facts), verdicts.lost_attempts(facts)
    rows = facts.task_rows
    task_day = (facts.tasks.created[rows] // DAY_S).astype(np.int64)
    place = (task_day - start) // days
    spend_place = (facts.spend.day - start) // days
    spend: dict[str, tuple[float, ...]] = {}
    success: dict[str, tuple[float | None, ...]] = {}
    attempts: dict[str, tuple[int, ...]] = {}
    for model in models:
        code = facts.models.find(model)
        mine = facts.attempts.model == code
        paid = facts.spend.model == code
        money = np.bincount(spend_place[paid], weights=facts.spend.micros[paid], minlength=count)
        # A day has few cases: each shows the share of the seven days up to it.
        wins = _trailing(np.bincount(place[mine & won], minlength=count), 7 // days)
        cases = _trailing(np.bincount(place[mine & (won | lost)], minlength=count), 7 // days)
        spend[model] = tuple(float(one) / MICROS for one in money)
        success[model] = tuple(int(w) / int(n) if n else None for w, n in zip(wins, cases, strict=True))
        attempts[model] = tuple(int(one) for one in np.bincount(place[mine], minlength=count))
    return Series(starts, days, spend, success, attempts)


def _trailing(counts: Ints, buckets: int) -> Ints:
    """Return, for each place, the sum of the last `buckets` counts."""
    sums = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts)])
    trailing: Ints = sums[1:] - sums[np.maximum(np.arange(1, len(sums)) - buckets, 0)]
    return trailing
