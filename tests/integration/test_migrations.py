"""The schema comes from the migrations alone, on both databases."""

import subprocess
import sys
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import text
from sqlmodel import SQLModel, func, select

from bench.dashboard_data import Scale, fill
from store import migrations
from store.database import Database
from store.errors import ConfigurationError
from store.states import DeliveryState
from store.tables import Attempt, Delivery, Ledger, Task
from tests.support.rows import add_task

ROOT = Path(__file__).resolve().parents[2]


def test_the_migrations_make_exactly_the_tables_that_the_code_declares(database: Database) -> None:
    with database.engine.connect() as connection:
        context = MigrationContext.configure(connection)
        assert compare_metadata(context, SQLModel.metadata) == []


def test_the_newest_revision_is_reported_as_applied(database: Database) -> None:
    current, newest = migrations.pending(database)
    assert current == newest is not None


def test_a_database_that_a_newer_acrouter_has_used_is_left_alone(database: Database) -> None:
    with database.session() as session:
        session.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(ConfigurationError, match=r"at revision 9999.*restore the backup from before the upgrade"):
        migrations.upgrade(database)
    assert migrations.pending(database)[0] == "9999"


def test_down_and_up_again(database: Database) -> None:
    migrations.downgrade(database, "base")
    migrations.upgrade(database)
    with database.session() as session:
        session.add(Delivery(guid="a", event="ping", payload=b"{}"))
    with database.session() as session:
        delivery = session.exec(select(Delivery)).one()
    assert delivery.state is DeliveryState.RECEIVED
    assert delivery.received_at.tzinfo is not None


def test_a_database_with_a_past_keeps_it_down_and_up_again(database: Database) -> None:
    fill(database, Scale(tasks=20, days=5))
    before = _counts(database)
    migrations.downgrade(database, "0001")
    migrations.upgrade(database)
    assert _counts(database) == before


def test_what_is_being_published_stays_on_the_commit_that_it_was_tested_on(database: Database) -> None:
    begun = add_task(database, base_sha="b" * 40, branch="acrouter/issue-1-task-1")
    waiting = add_task(database, base_sha="b" * 40)
    migrations.downgrade(database, "0005")
    migrations.upgrade(database)
    with database.reading() as session:
        assert session.get_one(Task, begun).parent_sha == "b" * 40
        assert session.get_one(Task, waiting).parent_sha == ""


def _counts(database: Database) -> list[int]:
    with database.reading() as session:
        return [session.exec(select(func.count()).select_from(table)).one() for table in (Task, Attempt, Ledger)]


def test_the_version_before_can_read_the_deliveries_that_wait(database: Database) -> None:
    with database.session() as session:
        session.add(Delivery(guid="a", event="ping", payload=b'{"zen": "Keep it simple."}'))
    migrations.downgrade(database, "0005")
    with database.reading() as session:
        assert (
            bytes(session.execute(text("SELECT payload FROM delivery")).scalar_one()) == b'{"zen": "Keep it simple."}'
        )
    migrations.upgrade(database)
    with database.reading() as session:
        assert session.exec(select(Delivery.payload)).one() == b'{"zen": "Keep it simple."}'


def test_processes_that_migrate_at_the_same_time_take_turns(database: Database) -> None:
    migrations.downgrade(database, "base")
    code = "import sys; from store import database, migrations; migrations.upgrade(database.Database(sys.argv[1]))"
    processes = [subprocess.Popen([sys.executable, "-c", code, _url(database)], cwd=ROOT) for _ in range(3)]
    assert [process.wait(60) for process in processes] == [0, 0, 0]
    assert migrations.pending(database)[0] == migrations.pending(database)[1]


def _url(database: Database) -> str:
    return database.engine.url.render_as_string(hide_password=False)
