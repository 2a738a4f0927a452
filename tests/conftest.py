"""Fixtures for all tests: a database of each kind, and Redis; and in which order the tests are told."""

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from store import migrations
from store.database import Database
from tests.support.services import create_postgres_database, postgres_server, redis_server

SHARED_BY_A_MODULE = {"installation", "sandbox"}
"""Fixtures that take seconds to make: a module's tests run in one process, so that it is made once."""
LONGEST_FIRST = (
    "tests/acceptance/test_crashes.py",
    "tests/acceptance/test_endings.py",
    "tests/acceptance",
    "tests/integration/bugs/test_demo_command.py",
    "tests/integration/bugs/test_verdicts.py",
)
"""What takes minutes begins at once, so that the processes that share the tests end together."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put the longest first, and keep together what shares an installation."""

    def place(item: pytest.Item) -> int:
        path = item.path.relative_to(config.rootpath).as_posix()
        return next((i for i, start in enumerate(LONGEST_FIRST) if path.startswith(start)), len(LONGEST_FIRST))

    items.sort(key=place)
    for item in items:
        if SHARED_BY_A_MODULE & {*getattr(item, "fixturenames", ())}:
            item.add_marker(pytest.mark.xdist_group(item.path.relative_to(config.rootpath).as_posix()))


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
