"""The dashboard's numbers on cases that can be counted by hand."""

import pytest

from bot.dashboard import stats
from bot.dashboard.periods import of_days
from bot.dashboard.series import series
from store.states import AttemptState, TaskState
from tests.support.facts import NOW, Done, Tried, facts_of, lost_by, merged_by

MONTH = of_days(30, NOW)


def test_the_overview_of_five_tasks() -> None:
    facts = facts_of(
        merged_by("small", 0.10, seconds=300.0),
        Done(TaskState.MERGED, (Tried("small", 0.10), Tried("large", 0.50, published=True)), seconds=900.0),
        lost_by("small", 0.10),
        Done(TaskState.PUBLISHED, (Tried("large", 0.40, published=True),), seconds=600.0),
        Done(TaskState.STOPPED, (Tried("small", 0.05, state=AttemptState.LOST),)),
    )
    numbers = stats.numbers(stats.within(facts, MONTH))
    assert numbers.tasks == 5
    assert (numbers.merged, numbers.success.cases) == (2, 3), "an open PR and a stopped task are not decided"
    assert numbers.waiting == 1
    assert numbers.spend_usd == pytest.approx(1.25), "what was stopped was paid for, too"
    assert numbers.usd_per_merged == pytest.approx(0.625)
    assert numbers.seconds_to_pr == 600.0
    assert (numbers.escalated.successes, numbers.escalated.cases) == (1, 5)


def test_an_outage_decides_no_task_and_a_failure_of_acrouter_does() -> None:
    out_of_reach = Tried("small", 0.0, state=AttemptState.FAILED)
    facts = facts_of(
        merged_by("small"),
        Done(TaskState.FAILED, (out_of_reach, out_of_reach)),
        Done(TaskState.FAILED, (out_of_reach, Tried("large", 0.5))),
        Done(TaskState.FAILED, ()),
    )
    numbers = stats.numbers(stats.within(facts, MONTH))
    assert (numbers.merged, numbers.success.cases) == (1, 3)


def test_a_reverted_pr_is_no_success() -> None:
    numbers = stats.numbers(stats.within(facts_of(merged_by("small"), merged_by("small", reverted=True)), MONTH))
    assert (numbers.merged, numbers.success.cases) == (1, 2)


def test_a_period_is_compared_with_the_one_before() -> None:
    facts = facts_of(merged_by("small", days_ago=3), lost_by("small", days_ago=33), merged_by("small", days_ago=70))
    now, before = stats.within(facts, MONTH), stats.within(facts, MONTH.before())
    assert (stats.numbers(now).success.value, stats.numbers(before).success.value) == (1.0, 0.0)
    assert stats.numbers(before).spend_usd == pytest.approx(0.1)


def test_a_period_ends_with_today_and_holds_whole_days() -> None:
    facts = facts_of(*(merged_by("small", days_ago=days) for days in (0, 29, 29.49, 29.51, 30)))
    assert stats.numbers(stats.within(facts, MONTH)).tasks == 3, "noon less 29.51 days is the day before the first"


def test_models_are_judged_by_their_own_attempts() -> None:
    facts = facts_of(
        merged_by("small", 0.10),
        Done(TaskState.MERGED, (Tried("small", 0.10), Tried("large", 0.50, published=True))),
        Done(TaskState.CLOSED, (Tried("large", 0.60, published=True),)),
        Done(TaskState.PUBLISHED, (Tried("large", 0.40, published=True),)),
        Done(TaskState.NO_FIX, (Tried("small", 0.0, state=AttemptState.FAILED), Tried("large", 0.5))),
    )
    rows = {row.model: row for row in stats.by_model(stats.within(facts, MONTH))}
    small, large = rows["small"], rows["large"]
    assert (small.merged, small.success.cases, small.unusable, small.escalated) == (1, 2, 1, 2)
    assert (large.merged, large.success.cases, large.waiting, large.escalated) == (1, 3, 1, 0)
    assert small.usd_per_attempt == pytest.approx(0.10), "an endpoint that could not be used is no cheap attempt"
    assert large.usd_per_merged == pytest.approx(2.0)
    assert (small.chosen.successes, small.chosen.cases) == (3, 5)
    best = stats.best_value(list(rows.values()))
    assert best is not None
    assert best.model == "small"


def test_drift_is_told_only_where_chance_does_not_explain_it() -> None:
    before = [merged_by("small", days_ago=40) for _ in range(20)]
    worse = [lost_by("small") for _ in range(15)] + [merged_by("small") for _ in range(5)]
    facts = facts_of(*before, *worse)
    [row] = stats.by_model(stats.within(facts, MONTH), stats.within(facts, MONTH.before()))
    assert row.moved is not None
    assert row.moved.value == pytest.approx(-0.75)
    assert row.drifts

    facts = facts_of(merged_by("small", days_ago=40), lost_by("small"))
    [row] = stats.by_model(stats.within(facts, MONTH), stats.within(facts, MONTH.before()))
    assert row.moved is not None
    assert not row.drifts, "one case each side says nothing"


def test_the_frontier_holds_what_nothing_else_beats() -> None:
    facts = facts_of(
        *(merged_by("cheap", 0.1) for _ in range(2)),
        *(lost_by("cheap", 0.1) for _ in range(2)),
        *(merged_by("dear", 1.0) for _ in range(3)),
        lost_by("dear", 1.0),
        merged_by("waste", 1.5),
        lost_by("waste", 1.5),
    )
    cut = stats.within(facts, MONTH)
    points = {point.name: point for point in stats.points(cut, stats.by_model(cut))}
    assert [name for name in points if points[name].on_frontier] == ["cheap", "dear", "acrouter"]
    assert points["acrouter"].usd == pytest.approx(0.74)
    assert points["acrouter"].success.value == pytest.approx(0.6)


def test_series_put_money_and_success_on_their_days() -> None:
    facts = facts_of(
        merged_by("small", 0.2), lost_by("small", 0.1), merged_by("small", 0.3, days_ago=2), merged_by("x", days_ago=40)
    )
    week = of_days(7, NOW)
    drawn = series(stats.within(facts, week), week, ["small"])
    assert drawn.days == 1
    assert len(drawn.starts) == 7
    assert drawn.spend_usd["small"] == pytest.approx((0, 0, 0, 0, 0.3, 0, 0.3))
    assert drawn.success["small"] == (None, None, None, None, 1.0, 1.0, 2 / 3), "over the seven days up to each"
    year = of_days(365, NOW)
    long = series(stats.within(facts, year), year, ["small", "x"])
    assert long.days == 7
    assert sum(long.spend_usd["small"]) == pytest.approx(0.6)
    assert long.starts[-1] + 6 == year.last


def test_repositories_that_may_not_be_read_leave_no_trace() -> None:
    facts = facts_of(merged_by("small", 0.2), merged_by("large", 5.0, repository=43))
    seen = stats.within(facts.of_repositories([42]), MONTH)
    assert stats.numbers(seen).spend_usd == pytest.approx(0.2)
    assert [row.model for row in stats.by_model(seen)] == ["small"]


def test_a_model_that_is_heard_of_meanwhile_changes_no_number() -> None:
    class Growing(list[str]):
        """The names as another thread adds to them: one more at each look."""

        def __len__(self) -> int:
            self.append("new")
            return super().__len__()

    facts = stats.within(facts_of(merged_by("small"), lost_by("large", dimension="code_review")), MONTH)
    models, dimensions = stats.by_model(facts), stats.by_dimension(facts)
    facts.models.names = Growing(facts.models.names)
    assert (stats.by_model(facts), stats.by_dimension(facts)) == (models, dimensions)


def test_nothing_at_all_has_numbers() -> None:
    empty = stats.within(facts_of(), MONTH)
    numbers = stats.numbers(empty)
    assert numbers.tasks == 0
    assert numbers.success.value is None
    assert numbers.usd_per_merged is None
    assert stats.by_model(empty) == []
    assert stats.points(empty, []) == []
    assert stats.savings(empty, 1.0, 0.1) is None
    assert series(empty, MONTH, []).spend_usd == {}
