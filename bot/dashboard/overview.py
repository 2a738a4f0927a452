"""The overview's numbers, put together once for the page, the JSON API, the command line and the digest."""

from collections.abc import Sequence
from dataclasses import dataclass

from bot.dashboard import stats
from bot.dashboard.facts import Facts
from bot.dashboard.periods import Period
from bot.dashboard.savings import Savings
from bot.dashboard.series import Series, series
from bot.dashboard.stats import ModelNumbers, Numbers, Point
from store.settings import Settings


@dataclass(frozen=True)
class Overview:
    period: Period
    numbers: Numbers
    before: Numbers
    """Of the period of the same length before."""
    models: tuple[ModelNumbers, ...]
    best: ModelNumbers | None
    """The model with the cheapest merged PR."""
    strongest: ModelNumbers | None
    """The model whose attempts succeed most often, among those with ten decided ones."""
    points: tuple[Point, ...]
    savings: Savings | None
    series: Series


def overview(facts: Facts, period: Period, settings: Settings) -> Overview:
    """Return the overview of facts that are cut to what the viewer may see."""
    now, past = stats.within(facts, period), stats.within(facts, period.before())
    models = stats.by_model(now, past)
    return Overview(
        period=period,
        numbers=stats.numbers(now),
        before=stats.numbers(past),
        models=tuple(models),
        best=stats.best_value(models),
        strongest=stats.strongest(models),
        points=tuple(stats.points(now, models)),
        savings=stats.savings(now, settings.reward_score_weight, settings.reward_usd_weight),
        series=series(now, period, [row.model for row in models]),
    )


def why_in_a_sentence(reasons: Sequence[str]) -> str:
    """Return the two most telling reasons of a decision; the votes come first and say it in numbers."""
    sentence = " ".join(str(reason) for reason in reasons[:2])
    return sentence.removesuffix(".") + "." if sentence else ""
