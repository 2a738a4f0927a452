"""The numbers of the dashboard, as functions of the facts. docs/dashboard.md gives each formula in words."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from bot.dashboard import verdicts
from bot.dashboard.facts import Bools, Facts, Floats, Ints, once
from bot.dashboard.intervals import Interval, Share, difference
from bot.dashboard.periods import Period
from bot.dashboard.savings import Logged, Savings, compare

MICROS = 1_000_000


@dataclass(frozen=True)
class Numbers:
    """What a period came to. Tasks belong to the period of their trigger, money to that of its day."""

    tasks: int
    at_work: int
    waiting: int
    """PRs that are open."""
    success: Share
    """Merged among merged and lost."""
    spend_usd: float
    seconds_to_pr: float | None
    """Median from trigger to PR."""
    slowest_tenth_s: float | None
    escalated: Share
    """Tasks with a second attempt among those with a first."""

    @property
    def merged(self) -> int:
        return self.success.successes

    @property
    def usd_per_merged(self) -> float | None:
        return self.spend_usd / self.merged if self.merged else None


@dataclass(frozen=True)
class ModelNumbers:
    """One model in a period."""

    model: str
    chosen: Share
    """Tasks that it got first, among all that a model got first."""
    attempts: int
    waiting: int
    unusable: int
    success: Share
    spend_usd: float
    usd_per_attempt: float | None
    seconds: float | None
    """Median length of an attempt."""
    escalated: int
    """Attempts after which another model tried."""
    moved: Interval | None = None
    """Success less that of the period before."""

    @property
    def merged(self) -> int:
        return self.success.successes

    @property
    def usd_per_merged(self) -> float | None:
        return self.spend_usd / self.merged if self.merged else None

    @property
    def drifts(self) -> bool:
        """The move is larger than chance explains."""
        return self.moved is not None and (self.moved.low > 0 or self.moved.high < 0)


@dataclass(frozen=True)
class Point:
    """A way to work on the plane of cost and success."""

    name: str
    usd: float
    success: Share
    on_frontier: bool


def within(facts: Facts, period: Period) -> Facts:
    """Return the tasks that were triggered in a period, their attempts, and the period's spend."""
    created = facts.tasks.created
    tasks = (created >= period.start) & (created < period.end)
    spend = (facts.spend.day >= period.first) & (facts.spend.day <= period.last)
    return facts.only(tasks, spend)


def numbers(facts: Facts) -> Numbers:
    """Return the numbers of facts that are cut to a period already."""
    tasks = facts.tasks
    seconds = (tasks.finished - tasks.created)[verdicts.with_pull_request(tasks)]
    seconds = seconds[~np.isnan(seconds)]
    tried, again = (
        int((np.bincount(facts.task_rows[which], minlength=1) > 0).sum())
        for which in (slice(None), facts.attempts.number > 1)
    )
    return Numbers(
        tasks=len(tasks),
        at_work=int(verdicts.at_work(tasks).sum()),
        waiting=int(verdicts.waiting(tasks).sum()),
        success=Share(int(verdicts.merged(tasks).sum()), int(verdicts.decided(facts).sum())),
        spend_usd=float(facts.spend.micros.sum()) / MICROS,
        seconds_to_pr=float(np.median(seconds)) if len(seconds) else None,
        slowest_tenth_s=float(np.percentile(seconds, 90)) if len(seconds) else None,
        escalated=Share(again, tried),
    )


def by_model(facts: Facts, before: Facts | None = None) -> list[ModelNumbers]:
    """Return each model's numbers, the most used first; `before` is the period before, for how it moved."""
    models = len(facts.models.names)
    spent = np.bincount(facts.spend.model, weights=facts.spend.micros, minlength=models) / MICROS
    past = {row.model: row.success for row in by_model(before)} if before is not None else {}
    together = np.zeros(len(facts.tasks), dtype=np.int64)
    rows = _of_groups(facts, together, models, spent, facts.spend.model).get(0, [])
    return [replace(row, moved=difference(row.success, past[row.model])) if row.model in past else row for row in rows]


def by_dimension(facts: Facts) -> dict[str, list[ModelNumbers]]:
    """Return each model's numbers within each dimension; spend is the attempts', since days know no dimension."""
    groups = facts.tasks.dimension
    models = len(facts.models.names)
    place = groups[facts.task_rows].astype(np.int64) * models + facts.attempts.model
    spent: Floats = np.bincount(place, weights=facts.attempts.cost_usd).astype(np.float64)
    found = {facts.dimensions.names[code]: rows for code, rows in _of_groups(facts, groups, models, spent).items()}
    return {name: kept for name, rows in found.items() if name and (kept := [row for row in rows if row.attempts])}


def _of_groups(
    facts: Facts, groups: Ints, models: int, spent_usd: Floats, paid: Ints | None = None
) -> dict[int, list[ModelNumbers]]:
    """Return each model's numbers within each group of tasks, the most used first.

    Args:
        facts: The tasks and their attempts.
        groups: Each task's group, a small number.
        models: How many there are, counted once: another thread may hear of a new one meanwhile.
        spent_usd: By place, which is group x number of models + model.
        paid: Places that have a row whatever was tried there.
    """
    attempts, tasks, names = facts.attempts, facts.tasks, facts.models.names
    place = groups[facts.task_rows].astype(np.int64) * models + attempts.model
    has_first = tasks.first_model >= 0
    first = groups[has_first].astype(np.int64) * models + tasks.first_model[has_first]
    length = (int(groups.max(initial=0)) + 1) * models
    unusable = verdicts.unusable_attempts(facts)
    marks = (
        verdicts.won_attempts(facts),
        verdicts.lost_attempts(facts),
        verdicts.waiting_attempts(facts),
        unusable,
        _followed(facts),
    )
    tries, (wins, losses, waiting, broken, followed) = count_marks(place, marks, length)
    chosen = np.bincount(first, minlength=length)
    firsts = np.bincount(groups[has_first]).tolist()
    usable_usd = np.bincount(place, weights=np.where(unusable, 0.0, attempts.cost_usd), minlength=length)
    seconds = _medians(place, np.where(unusable, np.nan, attempts.finished - attempts.started), length)
    known = tries + chosen + (0 if paid is None else np.bincount(paid, minlength=length))
    rows: dict[int, list[ModelNumbers]] = {}
    for at in np.flatnonzero(known).tolist():
        group, code = divmod(at, models)
        usable = int(tries[at] - broken[at])
        rows.setdefault(group, []).append(
            ModelNumbers(
                model=names[code],
                chosen=Share(int(chosen[at]), firsts[group] if group < len(firsts) else 0),
                attempts=int(tries[at]),
                waiting=int(waiting[at]),
                unusable=int(broken[at]),
                success=Share(int(wins[at]), int(wins[at] + losses[at])),
                spend_usd=float(spent_usd[at]) if at < len(spent_usd) else 0.0,
                usd_per_attempt=float(usable_usd[at]) / usable if usable else None,
                seconds=seconds[at],
                escalated=int(followed[at]),
            )
        )
    return {group: sorted(found, key=lambda row: (-row.attempts, row.model)) for group, found in rows.items()}


def count_marks(places: Ints, marks: Sequence[Bools], length: int) -> tuple[Ints, list[Ints]]:
    """Return how often each place occurs, and how often with each mark: one walk through the column for all of them."""
    bits = np.zeros(len(places), dtype=np.int64)
    for bit, mark in enumerate(marks):
        bits |= mark.astype(np.int64) << bit
    kinds = 1 << len(marks)
    counts = np.bincount(places * kinds + bits, minlength=length * kinds).reshape(length, kinds)
    kind = np.arange(kinds)
    return counts.sum(axis=1), [counts[:, (kind >> bit & 1) == 1].sum(axis=1) for bit in range(len(marks))]


def _medians(places: Ints, values: Floats, length: int) -> list[float | None]:
    """Return each place's median; None where it has no value. Values that are NaN are left out."""
    known = ~np.isnan(values)
    if not known.all():
        places, values = places[known], values[known]
    order = np.argsort(places.astype(np.int16) if length < 2**15 else places, kind="stable")
    ends = np.cumsum(np.bincount(places, minlength=length)).tolist()
    together = values[order]
    starts = [0, *ends][:-1]
    return [
        float(np.median(together[start:end])) if end > start else None for start, end in zip(starts, ends, strict=True)
    ]


def points(facts: Facts, rows: Sequence[ModelNumbers]) -> list[Point]:
    """Return each model and acrouter itself by mean cost and success, and who is on the frontier.

    On the frontier is who has no other that is as good for less money, or better for as much.
    """
    drafts = [
        (row.model, row.usd_per_attempt, row.success) for row in rows if row.success.cases and row.usd_per_attempt
    ]
    done = verdicts.decided(facts)
    tasks = int(done.sum())
    if tasks:
        usd = float(facts.attempts.cost_usd.sum(where=done[facts.task_rows])) / tasks
        drafts.append(("acrouter", usd, Share(int(verdicts.merged(facts.tasks).sum()), tasks)))
    return [
        Point(name, usd, success, not any(_beats(other, (name, usd, success)) for other in drafts))
        for name, usd, success in drafts
        if usd is not None
    ]


def savings(facts: Facts, score_weight: float, usd_weight: float) -> Savings | None:
    """Return acrouter beside always using the best single model."""
    return compare(logged(facts), facts.models.names, score_weight, usd_weight)


def logged(facts: Facts) -> Logged:
    """Return the decided tasks whose first model was the router's own choice and had its chance."""
    tasks, attempts = facts.tasks, facts.attempts
    first = np.flatnonzero(attempts.number == 1)
    of_first = facts.task_rows[first]
    had_a_chance = np.zeros(len(tasks), dtype=np.bool_)
    had_a_chance[of_first] = ~verdicts.unusable_attempts(facts)[first]
    first_usd, first_won = np.zeros(len(tasks)), np.zeros(len(tasks))
    first_usd[of_first] = attempts.cost_usd[first]
    first_won[of_first] = verdicts.won_attempts(facts)[first]
    own = verdicts.decided(facts) & ~tasks.pinned & (tasks.first_model >= 0) & had_a_chance
    total: Floats = np.bincount(facts.task_rows, weights=attempts.cost_usd, minlength=len(tasks)).astype(np.float64)
    return Logged(
        model=tasks.first_model[own],
        propensity=tasks.propensity[own],
        dimension=tasks.dimension[own],
        first_won=first_won[own],
        first_usd=first_usd[own],
        won=verdicts.merged(tasks)[own].astype(np.float64),
        usd=total[own],
    )


def best_value(rows: Sequence[ModelNumbers]) -> ModelNumbers | None:
    """Return the model with the cheapest merged PR, or None before any was merged."""
    merged = [row for row in rows if row.usd_per_merged is not None]
    return min(merged, key=lambda row: row.usd_per_merged or 0.0, default=None)


def strongest(rows: Sequence[ModelNumbers]) -> ModelNumbers | None:
    """Return the model whose attempts succeed most often, or None where none has ten decided ones and a merged PR."""
    known = [row for row in rows if row.success.cases >= 10 and row.merged]
    return max(known, key=lambda row: row.success.value or 0.0, default=None)


@once
def _followed(facts: Facts) -> Bools:
    """Attempts that another one came after: a task's attempts are numbered from 1 on."""
    rows = facts.task_rows
    followed: Bools = facts.attempts.number < np.bincount(rows, minlength=len(facts.tasks))[rows]
    return followed


def _beats(other: tuple[str, float | None, Share], one: tuple[str, float | None, Share]) -> bool:
    (_, other_usd, other_success), (_, usd, success) = other, one
    if other is one or other_usd is None or usd is None:
        return False
    theirs, mine = other_success.value or 0.0, success.value or 0.0
    return other_usd <= usd and theirs >= mine and (other_usd < usd or theirs > mine)
