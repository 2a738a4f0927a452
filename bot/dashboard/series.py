"""Spend and success per model over time."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bot.dashboard import verdicts
from bot.dashboard.facts import DAY_S, Facts, Ints
from bot.dashboard.periods import Period
from bot.dashboard.stats import MICROS, count_marks

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
    # Whole numbers are divided faster.
    task_place = (facts.tasks.created.astype(np.int64) // DAY_S - start) // days
    place = task_place[facts.task_rows] + facts.attempts.model.astype(np.int64) * count
    spend_place = (facts.spend.day - start) // days + facts.spend.model.astype(np.int64) * count

    length = count * len(facts.models.names)
    money = np.bincount(spend_place, facts.spend.micros, minlength=length).reshape(-1, count) / MICROS
    tries, marked = count_marks(place, (won, won | lost), length)
    tried, wins, cases = (one.reshape(-1, count) for one in (tries, *marked))
    spend: dict[str, tuple[float, ...]] = {}
    success: dict[str, tuple[float | None, ...]] = {}
    attempts: dict[str, tuple[int, ...]] = {}
    for model in models:
        code = facts.models.find(model)
        if code < 0:
            spend[model], success[model], attempts[model] = (0.0,) * count, (None,) * count, (0,) * count
            continue
        # A day has few cases: each shows the share of the seven days up to it.
        shown = zip(_trailing(wins[code], 7 // days).tolist(), _trailing(cases[code], 7 // days).tolist(), strict=True)
        spend[model] = tuple(money[code].tolist())
        success[model] = tuple(won_there / ended if ended else None for won_there, ended in shown)
        attempts[model] = tuple(tried[code].tolist())
    return Series(starts, days, spend, success, attempts)


def _trailing(counts: Ints, buckets: int) -> Ints:
    """Return, for each place, the sum of the last `buckets` counts."""
    sums = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts)])
    trailing: Ints = sums[1:] - sums[np.maximum(np.arange(1, len(sums)) - buckets, 0)]
    return trailing
