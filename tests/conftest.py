"""Fixtures for all tests: a database of each kind, and Redis; and in which order the tests are told."""

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from store import migrations
from store.database import Database
from tests.support.services import create_postgres_database, postgres_server, redis_server

LONGEST_FIRST = (
    "tests/acceptance/test_crashes.py",
    "tests/acceptance/test_endings.py",
    "tests/acceptance",
    "tests/integration/routing/test_policy_vllm.py",
    "tests/integration/bugs/test_demo_command.py",
    "tests/integration/bugs/test_verdicts.py",
)
"""What takes minutes begins at once, so that the processes that share the tests end together."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put the longest first."""

    def place(item: pytest.Item) -> int:
        path = item.path.relative_to(config.rootpath).as_posix()
        return next((i for i, start in enumerate(LONGEST_FIRST) if path.startswith(start)), len(LONGEST_FIRST))

    items.sort(key=place)


@pytest.fixture(scope="session")
def postgres_base() -> Iterator[str]:
    """The URL of a real Postgres, without a database name."""
    with postgres_server() as base:
        yield base


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    """The URL of a real Redis."""
    with redis_server() as url:
        yield url


@pytest.fixture
def sqlite_database(tmp_path: Path) -> Iterator[Database]:
    """A migrated SQLite database."""
    database = Database(f"sqlite:///{tmp_path / 'acrouter.sqlite3'}")
    migrations.upgrade(database)
    yield database
    database.dispose()


@pytest.fixture
def postgres_database(postgres_base: str) -> Iterator[Database]:
    """A migrated Postgres database."""
    database = Database(create_postgres_database(postgres_base, f"test_{uuid.uuid4().hex}"))
    migrations.upgrade(database)
    yield database
    database.dispose()


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def database(request: pytest.FixtureRequest) -> Database:
    """A migrated database: the test runs once on SQLite and once on Postgres."""
    found: Database = request.getfixturevalue(f"{request.param}_database")
    return found
