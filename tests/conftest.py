"""Fixtures for all tests: a database of each kind, and Redis; and in which order the tests are told."""

import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from store import migrations
from store.database import Database
from tests.support.services import create_postgres_database, drop_postgres_database, postgres_server, redis_server

LONGEST_FIRST = (
    "tests/acceptance/test_crashes.py",
    "tests/integration/test_fault_table.py",
    "tests/acceptance/test_solve.py",
    "tests/acceptance/test_endings.py",
    "tests/acceptance/test_embedded.py",
    "tests/integration/sandbox/test_verify_patches.py",
    "tests/integration/bugs/test_verdicts.py",
    "tests/integration/routing/test_policy_vllm.py",
    "tests/integration/bugs/test_catalogue_is_true.py",
    "tests/acceptance",
    "tests/integration/bugs",
    "tests/integration/test_newest_base.py",
    "tests/integration/sandbox",
    "tests/integration/bot/test_ci_and_outcomes.py",
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


@pytest.fixture(scope="session")
def migrated_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated SQLite file that nobody writes to: to migrate one for each test would take minutes of all tests."""
    path = tmp_path_factory.mktemp("migrated") / "acrouter.sqlite3"
    database = Database(f"sqlite:///{path}")
    migrations.upgrade(database)
    database.dispose()
    assert not path.with_name(f"{path.name}-wal").exists(), "all of it is in the one file"
    return path


@pytest.fixture(scope="session")
def migrated_postgres(postgres_base: str) -> str:
    """The name of a migrated Postgres database that nobody is connected to."""
    name = f"migrated_{uuid.uuid4().hex}"
    database = Database(create_postgres_database(postgres_base, name))
    migrations.upgrade(database)
    database.dispose()
    return name


@pytest.fixture
def sqlite_database(tmp_path: Path, migrated_sqlite: Path) -> Iterator[Database]:
    """A migrated SQLite database."""
    path = tmp_path / "acrouter.sqlite3"
    shutil.copyfile(migrated_sqlite, path)
    database = Database(f"sqlite:///{path}")
    yield database
    database.dispose()


@pytest.fixture
def postgres_database(postgres_base: str, migrated_postgres: str) -> Iterator[Database]:
    """A migrated Postgres database."""
    name = f"test_{uuid.uuid4().hex}"
    database = Database(create_postgres_database(postgres_base, name, template=migrated_postgres))
    yield database
    database.dispose()
    drop_postgres_database(postgres_base, name)


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def database(request: pytest.FixtureRequest) -> Database:
    """A migrated database: the test runs once on SQLite and once on Postgres."""
    found: Database = request.getfixturevalue(f"{request.param}_database")
    return found
