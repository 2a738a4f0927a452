"""The facts in memory say what the database says, on both databases, at first and after every change."""

from collections import Counter
from datetime import timedelta

import numpy as np
from sqlmodel import select

from bench.dashboard_data import Scale, fill
from bot.dashboard import stats
from bot.dashboard.caps import caps, reservations
from bot.dashboard.facts_store import FactsStore, read_facts
from bot.dashboard.health import health
from bot.dashboard.periods import of_days
from bot.dashboard.roles import Role, Viewer
from bot.dashboard.task_list import list_tasks, parse_filter
from store.database import Database
from store.states import AttemptState, LedgerKind, OutcomeKind, TaskState
from store.tables import Attempt, Ledger, Outcome, Task
from store.types import utc_now
from tests.support.rows import settings
from workers.limits import operators_limits

EVERYONE = Viewer("x", Role.ADMIN, None)


def test_the_facts_are_what_the_database_says(database: Database) -> None:
    fill(database, Scale(tasks=120, days=40))
    facts = read_facts(database)
    with database.reading() as session:
        tasks = session.exec(select(Task)).all()
        attempts = session.exec(select(Attempt)).all()
        paid = sum(row.usd_micros for row in session.exec(select(Ledger).where(Ledger.closing)).all())
    assert len(facts.tasks) == 120
    assert len(facts.attempts) == len(attempts)
    for place, row in enumerate(sorted(tasks, key=lambda task: task.id or 0)):
        assert facts.tasks.id[place] == row.id
        assert abs(facts.tasks.created[place] - row.created_at.timestamp()) < 0.01
        assert facts.titles.shown[facts.tasks.title[place]] == row.title
    assert int(facts.spend.micros.sum()) == paid
    year = stats.numbers(stats.within(facts, of_days(365)))
    assert year.merged == Counter(task.state for task in tasks)[TaskState.MERGED]
    by_model = {row.model: row.attempts for row in stats.by_model(facts)}
    assert by_model == Counter(attempt.model for attempt in attempts)


def test_every_change_is_seen(database: Database) -> None:
    fill(database, Scale(tasks=40, days=10))
    store = FactsStore(database, max_age_s=0.0)
    first = store.current()
    assert store.current() is first, "nothing changed, nothing is made anew"
    with database.session() as session:
        task = session.exec(select(Task).where(Task.state == TaskState.MERGED)).first()
        assert task is not None
        assert task.id is not None
        reverted = task.id
        session.add(Outcome(task_id=reverted, kind=OutcomeKind.REVERTED, ref="r", at=utc_now()))
        task.updated_at = utc_now()
        session.add(task)
        new = Task(**{**task.model_dump(exclude={"id"}), "title": "Brand new", "state": TaskState.QUEUED})
        new.created_at = new.updated_at = utc_now()
        new.finished_at, new.published_attempt_id = None, None
        session.add(new)
        session.add(
            Ledger(
                reservation="n", closing=True, kind=LedgerKind.SETTLED, usd_micros=7, task_id=reverted, model="newcomer"
            )
        )
    later = store.current()
    assert len(later.tasks) == len(first.tasks) + 1
    assert stats.numbers(later).merged == stats.numbers(first).merged - 1
    assert int(later.spend.micros.sum()) == int(first.spend.micros.sum()) + 7
    assert "newcomer" in {row.model for row in stats.by_model(later)}
    assert np.array_equal(later.tasks.id, np.sort(later.tasks.id))
    with database.reading() as session:
        found = list_tasks(session, later, parse_filter({"text": "brand NEW", "state": "open"}))
        assert [line.title for line in found.lines] == ["Brand new"]
        state = health(session, later, EVERYONE, settings())
        assert [one.title for one in state.tasks] == ["Brand new"]
        assert state.states["queued"] == 1


def test_a_clock_that_is_ahead_hides_no_change(sqlite_database: Database) -> None:
    from tests.support.rows import add_task

    add_task(sqlite_database, updated_at=utc_now() + timedelta(hours=1))
    store = FactsStore(sqlite_database, max_age_s=0.0)
    assert len(store.current().tasks) == 1
    add_task(sqlite_database)
    assert len(store.current().tasks) == 2


def test_pages_of_tasks_are_whole_and_do_not_overlap(database: Database) -> None:
    fill(database, Scale(tasks=120, days=40))
    facts = read_facts(database)
    seen: list[int] = []
    before = None
    with database.reading() as session:
        while True:
            page = list_tasks(session, facts, parse_filter({"model": "small"}), before=before, page=25)
            seen += [line.id for line in page.lines]
            if page.next_before is None:
                break
            before = page.next_before
    assert len(seen) == page.total == len(set(seen))
    assert seen == sorted(seen, reverse=True)


def test_caps_count_what_is_settled_and_what_is_reserved(database: Database) -> None:
    from tests.support.rows import add_attempt, add_task
    from workers import budgets

    task = add_task(database)
    attempt = add_attempt(database, task)
    configured = settings(day_budget_usd=4.0)
    done = budgets.reserve(database, configured, task_id=task, attempt_id=attempt, model="small", usd=0.5)
    budgets.settle(database, done, 0.2)
    budgets.reserve(database, configured, task_id=task, attempt_id=attempt, model="small", usd=1.0)
    facts = read_facts(database)
    with database.reading() as session:
        day, month = caps(facts, operators_limits(session, configured), reservations(session))
        settled = budgets.spent_micros(session)
    assert (day.name, day.limit_usd, day.used_usd, day.reserved_usd) == ("day", 4.0, 1.2, 1.0)
    assert month.used_usd == budgets.to_usd(settled)


def test_health_names_the_targets_that_rest_and_why_a_model_could_not_be_used(database: Database) -> None:
    from tests.support.rows import add_attempt, add_repository, add_task

    configured = settings(max_tasks_per_target=3)
    add_repository(database, 43, "octo/secret")
    tasks = [add_task(database, state=TaskState.NO_FIX) for _ in range(3)]
    add_task(database, target="42/issues/2", target_number=2, state=TaskState.NO_FIX)
    for _ in range(4):
        add_task(database, repository_id=43, target="43/issues/1", state=TaskState.NO_FIX)
    earlier = utc_now() - timedelta(minutes=1)
    add_attempt(database, tasks[0], state=AttemptState.FAILED, error="an older reason", started_at=earlier)
    add_attempt(database, tasks[1], state=AttemptState.FAILED, error="an older reason", started_at=earlier)
    add_attempt(database, tasks[0], number=2, state=AttemptState.FAILED, error="small cannot be used: no such key")
    add_attempt(database, tasks[1], number=2, model="large", state=AttemptState.VERIFIED)
    facts = read_facts(database)
    with database.reading() as session:
        everything = health(session, facts, EVERYONE, configured)
        some = health(session, facts, Viewer("ada", Role.VIEWER, (42,)), configured)
    assert everything.breakers == [("43/issues/1", 4), ("42/issues/1", 3)]
    assert some.breakers == [("42/issues/1", 3)]
    small, large = sorted(everything.endpoints, key=lambda one: one.model, reverse=True)
    assert (small.attempts, small.unusable, small.error) == (3, 3, "small cannot be used: no such key")
    assert (large.attempts, large.unusable, large.error) == (1, 0, "")


def test_health_tells_which_model_is_passed_over_and_what_holds_a_task_up(database: Database) -> None:
    from tests.support.rows import add_attempt, add_task
    from workers.breakers import FAILURES, EndpointBreakers

    since = utc_now() - timedelta(hours=2)
    task = add_task(database, waiting_since=since, reason="GitHub is away.")
    add_attempt(database, task, model="large", state=AttemptState.VERIFIED)
    with database.session() as session:
        for model, times in (("small", FAILURES), ("large", FAILURES - 1)):
            for _ in range(times):
                EndpointBreakers().failed(session, model, "HTTP 503", utc_now())
    facts = read_facts(database)
    with database.reading() as session:
        state = health(session, facts, EVERYONE, settings())
    large, small = sorted(state.endpoints, key=lambda one: one.model)
    assert (large.attempts, large.failures, large.retry_at) == (1, FAILURES - 1, None)
    assert (small.attempts, small.failures) == (0, FAILURES), "it was tried by nobody within the day"
    assert small.error == "HTTP 503"
    assert small.retry_at is not None
    assert small.retry_at > utc_now()
    assert [(one.waiting_since, one.reason) for one in state.tasks] == [(since, "GitHub is away.")]

    few = Viewer("ada", Role.VIEWER, (1,))
    with database.reading() as session:
        seen = {one.model: one for one in health(session, facts, few, settings()).endpoints}
    assert seen["small"].retry_at is not None
    assert seen["small"].error == "", "it may be about a repository that she cannot read"
