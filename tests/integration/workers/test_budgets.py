"""Money is reserved before a call and settled after it, and no cap is passed, however many ask at once."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import text
from sqlmodel import col, select
from structlog.testing import capture_logs

from sandbox.errors import BudgetExceeded
from store.database import Database
from store.states import LedgerKind
from store.tables import ConfigurationFile, Installation, Ledger, Repository, Task
from store.types import utc_now
from tests.support.rows import add_attempt, add_repository, add_task, settings
from tests.support.services import wait_until
from workers import budgets


@pytest.fixture
def task_id(database: Database) -> int:
    return add_task(database)


@pytest.fixture
def attempt_id(database: Database, task_id: int) -> int:
    return add_attempt(database, task_id)


def reserve(database: Database, task_id: int, attempt_id: int, usd: float, **caps: float) -> str:
    return budgets.reserve(database, settings(**caps), task_id=task_id, attempt_id=attempt_id, model="small", usd=usd)


def spent(database: Database, task_id: int) -> float:
    with database.session() as session:
        return budgets.to_usd(budgets.spent_micros(session, task_id=task_id))


def test_a_reservation_counts_until_it_is_settled_with_the_real_cost(
    database: Database, task_id: int, attempt_id: int
) -> None:
    reservation = reserve(database, task_id, attempt_id, 0.50)
    assert spent(database, task_id) == 0.50
    budgets.settle(database, reservation, 0.02)
    assert spent(database, task_id) == 0.02


def test_settling_twice_counts_once(database: Database, task_id: int, attempt_id: int) -> None:
    reservation = reserve(database, task_id, attempt_id, 0.50)
    budgets.settle(database, reservation, 0.02)
    budgets.settle(database, reservation, 0.40)
    assert spent(database, task_id) == 0.02


def test_the_tasks_budget_holds(database: Database, task_id: int, attempt_id: int) -> None:
    budgets.settle(database, reserve(database, task_id, attempt_id, 1.5), 1.5)
    with pytest.raises(BudgetExceeded, match=r"budget of \$2.00.*\$1.5000 is used"):
        reserve(database, task_id, attempt_id, 0.51)
    reserve(database, task_id, attempt_id, 0.5)


def test_the_days_cap_holds_across_tasks_and_names_its_setting(
    database: Database, task_id: int, attempt_id: int
) -> None:
    other = add_task(database, target="42/issues/2", target_number=2)
    reserve(database, other, add_attempt(database, other), 0.9, day_budget_usd=1.0)
    with pytest.raises(BudgetExceeded, match=r"a day is used up.*ACROUTER_DAY_BUDGET_USD"):
        reserve(database, task_id, attempt_id, 0.2, day_budget_usd=1.0)


def test_what_a_dead_worker_reserved_counts_as_spent(database: Database, task_id: int, attempt_id: int) -> None:
    reserve(database, task_id, attempt_id, 0.25)
    settled = reserve(database, task_id, attempt_id, 0.25)
    budgets.settle(database, settled, 0.01)
    with database.session() as session:
        assert budgets.assume_open(session, task_id) == 1
    with database.session() as session:
        assert budgets.assume_open(session, task_id) == 0
        kinds = [row.kind for row in session.exec(select(Ledger)).all()]
    assert sorted(kinds) == [LedgerKind.ASSUMED, LedgerKind.RESERVED, LedgerKind.RESERVED, LedgerKind.SETTLED]
    assert spent(database, task_id) == 0.26


def test_fifty_calls_at_once_cannot_pass_a_cap_together(database: Database, task_id: int, attempt_id: int) -> None:
    def ask(_number: int) -> bool:
        try:
            reserve(database, task_id, attempt_id, 0.1, day_budget_usd=1.0)
        except BudgetExceeded:
            return False
        return True

    with ThreadPoolExecutor(25) as pool:
        granted = sum(pool.map(ask, range(50)))
    assert granted == 10
    assert spent(database, task_id) == 1.0


def test_amounts_are_rounded_up_to_the_micro_dollar() -> None:
    assert budgets.to_micros(0.0000001) == 1
    assert budgets.to_micros(0.1) == 100_000
    assert budgets.to_micros(4.03) == 4_030_000, "what only a computer's fraction adds is no money"
    assert budgets.to_micros(0) == 0


def test_a_call_over_midnight_counts_in_the_new_day_before_and_after_it_is_settled(
    database: Database, task_id: int, attempt_id: int
) -> None:
    over_midnight = reserve(database, task_id, attempt_id, 0.9, day_budget_usd=1.0)
    with database.session() as session:
        row = session.exec(select(Ledger).where(Ledger.reservation == over_midnight)).one()
        row.at = utc_now() - timedelta(days=1)
        session.add(row)
    with pytest.raises(BudgetExceeded, match="a day is used up"):
        reserve(database, task_id, attempt_id, 0.2, day_budget_usd=1.0)
    budgets.settle(database, over_midnight, 0.9)
    with pytest.raises(BudgetExceeded, match="a day is used up"):
        reserve(database, task_id, attempt_id, 0.2, day_budget_usd=1.0)


def test_a_months_cap_counts_what_its_earlier_days_cost_and_begins_anew_with_the_next(
    database: Database, task_id: int, attempt_id: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    caps = {"day_budget_usd": 1.0, "month_budget_usd": 1.0}
    budgets.settle(database, reserve(database, task_id, attempt_id, 0.9), 0.9)
    with database.session() as session:
        for row in session.exec(select(Ledger)).all():
            row.at = datetime(2026, 3, 3, 12, tzinfo=UTC)
            session.add(row)
    monkeypatch.setattr("workers.caps.utc_now", lambda: datetime(2026, 3, 20, 12, tzinfo=UTC))
    with pytest.raises(BudgetExceeded, match=r"The budget of \$1.00 a month is used up.*ACROUTER_MONTH_BUDGET_USD"):
        reserve(database, task_id, attempt_id, 0.2, **caps)
    monkeypatch.setattr("workers.caps.utc_now", lambda: datetime(2026, 4, 1, tzinfo=UTC))
    reserve(database, task_id, attempt_id, 0.2, **caps)


@pytest.mark.postgres
def test_a_call_that_ends_while_its_task_is_written_off_is_counted_once(postgres_database: Database) -> None:
    task = add_task(postgres_database)
    reservation = reserve(postgres_database, task, add_attempt(postgres_database, task), 0.25)
    with ThreadPoolExecutor(1) as pool:
        with postgres_database.session() as session:
            assert budgets.assume_open(session, task) == 1
            session.flush()
            settled = pool.submit(budgets.settle, postgres_database, reservation, 0.01)
            wait_until(lambda: _waits_for_a_lock(postgres_database), what="the settlement's wait")
        settled.result(10)
    with postgres_database.session() as session:
        closing = session.exec(select(Ledger.kind).where(col(Ledger.closing).is_(True))).all()
    assert closing == [LedgerKind.ASSUMED]


def _waits_for_a_lock(database: Database) -> bool:
    query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    with database.reading() as session:
        return bool(session.execute(text(query)).scalar())


def test_a_days_cap_counts_from_midnight_on(
    database: Database, task_id: int, attempt_id: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    budgets.settle(database, reserve(database, task_id, attempt_id, 0.9), 0.9)
    with database.session() as session:
        for row in session.exec(select(Ledger)).all():
            row.at = datetime(2026, 3, 20, 0, 0, 1, tzinfo=UTC)
            session.add(row)
    monkeypatch.setattr("workers.caps.utc_now", lambda: datetime(2026, 3, 20, 23, 59, tzinfo=UTC))
    with pytest.raises(BudgetExceeded, match="a day is used up"):
        reserve(database, task_id, attempt_id, 0.2, day_budget_usd=1.0)
    monkeypatch.setattr("workers.caps.utc_now", lambda: datetime(2026, 3, 21, tzinfo=UTC))
    reserve(database, task_id, attempt_id, 0.2, day_budget_usd=1.0)


def test_fifty_calls_at_once_in_two_repositories_cannot_pass_their_organisations_cap(database: Database) -> None:
    tasks = []
    for repository_id, name in ((42, "octo/tools"), (43, "octo/more")):
        add_repository(database, repository_id, name)
        task = add_task(database, repository_id=repository_id, target=f"{repository_id}/issues/1", budget_usd=10.0)
        tasks.append((task, add_attempt(database, task)))

    def ask(number: int) -> bool:
        try:
            reserve(database, *tasks[number % 2], 0.1, organisation_day_budget_usd=1.0)
        except BudgetExceeded as refusal:
            return "octo's budget of $1.00 a day" not in str(refusal)
        return True

    with ThreadPoolExecutor(25) as pool:
        granted = sum(pool.map(ask, range(50)))
    assert granted == 10


def pays(database: Database, repository_id: int, number: int, usd: float, **caps: float) -> None:
    task = add_task(database, repository_id=repository_id, target=f"{repository_id}/issues/{number}")
    budgets.settle(database, reserve(database, task, add_attempt(database, task), usd, **caps), usd)


def test_an_organisation_that_installs_the_app_again_has_spent_what_it_spent(database: Database) -> None:
    add_repository(database, 42, "octo/tools")
    pays(database, 42, 1, 0.9)
    with database.session() as session:
        session.get_one(Installation, 7).removed = True
        session.add(Installation(id=8, account="Octo"))
        session.add(Installation(id=9, account="else"))
        session.flush()
        session.add(Repository(id=43, installation_id=8, full_name="Octo/more"))
        session.add(Repository(id=44, installation_id=9, full_name="else/where"))
    with pytest.raises(BudgetExceeded, match=r"Octo's budget of \$1.00 a day"):
        pays(database, 43, 1, 0.9, organisation_day_budget_usd=1.0)
    pays(database, 44, 1, 0.9, organisation_day_budget_usd=1.0)


def test_an_organisations_own_cap_holds_in_the_repository_that_it_stands_in(database: Database) -> None:
    add_repository(database, 43, "octo/.github")
    with database.session() as session:
        session.add(ConfigurationFile(repository_id=43, text="organisation: {day_budget_usd: 1}\n"))
    pays(database, 43, 1, 0.9)
    with pytest.raises(BudgetExceeded, match=r"octo's budget of \$1.00 a day"):
        pays(database, 43, 2, 0.9)


def test_a_persons_cap_holds_for_that_person_alone(database: Database) -> None:
    for login, granted in (("ada", False), ("bob", True)):
        task = add_task(database, requested_by=login, target=f"42/issues/{login}")
        attempt = add_attempt(database, task)
        if login == "ada":
            reserve(database, task, attempt, 0.9, person_day_budget_usd=1.0)
        if granted:
            reserve(database, task, attempt, 0.5, person_day_budget_usd=1.0)
        else:
            with pytest.raises(BudgetExceeded, match=r"ada's budget of \$1.00 a day.*ACROUTER_PERSON_DAY_BUDGET_USD"):
                reserve(database, task, attempt, 0.5, person_day_budget_usd=1.0)


def test_a_cap_that_is_nearly_reached_is_told_with_who_can_raise_it(
    database: Database, task_id: int, attempt_id: int
) -> None:
    caps = settings(repository_day_budget_usd=1.0)
    reserve(database, task_id, attempt_id, 0.79, repository_day_budget_usd=1.0)
    with database.session() as session:
        task = session.get_one(Task, task_id)
        assert budgets.warnings(session, caps, task) == ()
    reserve(database, task_id, attempt_id, 0.02, repository_day_budget_usd=1.0)
    with database.session() as session:
        [warning] = budgets.warnings(session, caps, task)
    assert "This repository's budget of $1.00 a day is 81% used" in warning
    assert "ACROUTER_REPOSITORY_DAY_BUDGET_USD" in warning


def test_a_tasks_own_budget_is_told_from_four_fifths_on(database: Database, task_id: int, attempt_id: int) -> None:
    def told() -> tuple[str, ...]:
        with database.session() as session:
            return budgets.warnings(session, settings(), session.get_one(Task, task_id))

    reserve(database, task_id, attempt_id, 1.59)
    assert told() == ()
    reserve(database, task_id, attempt_id, 0.01)
    [warning] = told()
    assert warning.startswith("This task's budget of $2.00 is 80% used. `/route retry budget=USD`")


def test_the_operators_log_tells_once_that_a_cap_gets_near_its_end(
    database: Database, task_id: int, attempt_id: int
) -> None:
    with capture_logs() as logs:
        for usd in (0.79, 0.02, 0.02):
            reserve(database, task_id, attempt_id, usd, day_budget_usd=1.0)
    assert [(entry["event"], entry["words"][:42]) for entry in logs] == [
        ("budget.nearly_used", "The budget of $1.00 a day is 81% used. An "),
    ]
