"""What leaves by other ways: the weekly digest, traces of a delivery, caps that hold in the ledger."""

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from bench.dashboard_data import Scale, fill
from bot.dashboard.digest import WeeklyDigest, advice, digest_text, last_week, parse_place
from bot.dashboard.overview import overview
from bot.dashboard.periods import iso, of_days
from sandbox.errors import BudgetExceeded
from store import tracing
from store.database import Database
from store.errors import ConfigurationError
from store.tables import Sweep
from store.types import utc_now
from tests.support.facts import NOW, facts_of, lost_by, merged_by
from tests.support.rows import add_attempt, add_task, settings
from workers import budgets
from workers.errors import BudgetError, ForgeTemporary
from workers.limits import set_limit


class WrittenComments:
    def __init__(self) -> None:
        self.bodies: list[tuple[str, int, str]] = []
        self.issues: list[tuple[str, str, str]] = []
        self.down = False

    def reply(self, repository: Any, number: int, marker: str, body: str) -> None:
        assert body.startswith(marker)
        self.bodies.append((repository.full_name, number, body))

    def open_issue(self, repository: Any, marker: str, title: str, body: str) -> int:
        assert body.startswith(marker)
        if self.down:
            raise ForgeTemporary("GitHub is down")
        self.issues.append((repository.full_name, title, body))
        return len(self.issues)


def test_last_weeks_digest_is_written_once(sqlite_database: Database) -> None:
    fill(sqlite_database, Scale(tasks=200, days=20))
    forge = WrittenComments()
    runtime: Any = SimpleNamespace(
        settings=settings(digest_issue="octo/tools#12"), database=sqlite_database, forge=forge
    )
    WeeklyDigest(runtime)()
    WeeklyDigest(runtime)()  # another process, or this one started again
    [(name, number, body)] = forge.bodies
    assert (name, number) == ("octo/tools", 12)
    assert "merged** of" in body
    assert "`huge`" in body


def test_each_weeks_digest_can_be_an_issue_of_its_own(sqlite_database: Database) -> None:
    add_task(sqlite_database)
    forge = WrittenComments()
    runtime: Any = SimpleNamespace(settings=settings(digest_issue="octo/tools"), database=sqlite_database, forge=forge)
    WeeklyDigest(runtime)()
    WeeklyDigest(runtime)()
    [(name, title, body)] = forge.issues
    week = last_week(utc_now())
    assert (name, title) == ("octo/tools", f"acrouter, {iso(week.first)} to {iso(week.last)}")
    assert "No task was started" in body
    assert forge.bodies == []


def test_a_digest_that_github_refused_is_written_at_a_later_turn(sqlite_database: Database) -> None:
    add_task(sqlite_database)
    forge = WrittenComments()
    runtime: Any = SimpleNamespace(settings=settings(digest_issue="octo/tools"), database=sqlite_database, forge=forge)
    write = WeeklyDigest(runtime)
    forge.down = True
    write()
    forge.down = False
    write()
    WeeklyDigest(runtime)()
    assert forge.issues == [], "nobody asks again at once"
    with sqlite_database.session() as session:
        session.get_one(Sweep, "digest").due_at = utc_now()
    write()
    assert len(forge.issues) == 1


def test_a_week_is_from_monday_to_sunday() -> None:
    for day in range(23, 30):  # 2026-11-23 is a Monday
        week = last_week(datetime(2026, 11, day, 12, tzinfo=UTC))
        assert (iso(week.first), iso(week.last)) == ("2026-11-16", "2026-11-22")


def test_advice_is_given_on_what_is_clear_and_not_on_chance() -> None:
    good = [merged_by("cheap", 0.1) for _ in range(30)]
    bad = [lost_by("dear", 1.0) for _ in range(20)]
    view = overview(facts_of(*good, *bad), of_days(7, NOW), settings())
    assert [(one.kind, one.model, one.other) for one in advice(view)] == [("dominated", "dear", "cheap")]
    assert "consider `enabled: false`" in digest_text(facts_of(*good, *bad), of_days(7, NOW), settings())
    few = overview(facts_of(*good[:3], *bad[:3]), of_days(7, NOW), settings())
    assert advice(few) == []
    assert "No task was started" in digest_text(facts_of(), of_days(7, NOW), settings())


def test_a_digest_needs_a_place() -> None:
    assert parse_place("octo/tools#12") == ("octo/tools", 12)
    assert parse_place("octo/tools") == ("octo/tools", None)
    for wrong in ("tools", "octo/tools#", "octo/tools#x", "https://github.com/octo/tools"):
        with pytest.raises(ConfigurationError, match=r"OWNER/NAME#NUMBER .* or OWNER/NAME for a new issue"):
            parse_place(wrong)


def test_a_delivery_is_one_trace_through_all_processes() -> None:
    exporter = InMemorySpanExporter()
    tracing.use_processor(SimpleSpanProcessor(exporter), "test")
    try:
        with tracing.root_span("webhook", "guid-1", event="issues"):
            pass
        with tracing.span("task", "guid-1", task_id=7), tracing.span("attempt", model="small"):
            pass
        with tracing.root_span("webhook", "guid-2"):
            pass
    finally:
        tracing._tracer.clear()
    spans = {(span.name, index): span for index, span in enumerate(exporter.get_finished_spans())}
    webhook, attempt, task, other = spans.values()
    assert webhook.context.trace_id == task.context.trace_id == attempt.context.trace_id
    assert webhook.context.trace_id != other.context.trace_id
    assert webhook.parent is None
    assert task.parent is not None
    assert task.parent.span_id == webhook.context.span_id
    assert attempt.parent is not None
    assert attempt.parent.span_id == task.context.span_id
    assert task.attributes == {"task_id": 7}


def test_without_an_endpoint_nothing_is_traced() -> None:
    with tracing.root_span("webhook", "guid"), tracing.span("task", "guid"):
        assert tracing._tracer == []


def test_a_changed_cap_is_what_the_ledger_honours(database: Database) -> None:
    task = add_task(database)
    attempt = add_attempt(database, task)
    configured = settings(day_budget_usd=50.0)
    set_limit(database, configured, "day", 0.10, by="grace")
    with pytest.raises(BudgetExceeded, match=r"\$0\.10 a day is used up.*on the dashboard"):
        budgets.reserve(database, configured, task_id=task, attempt_id=attempt, model="small", usd=0.5)
    set_limit(database, configured, "day", None, by="grace")
    budgets.reserve(database, configured, task_id=task, attempt_id=attempt, model="small", usd=0.5)
    with pytest.raises(BudgetError, match="Did you mean 'month'"):
        set_limit(database, configured, "mont", 1.0, by="grace")
