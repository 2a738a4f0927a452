"""The dashboard on a database with a made-up past, asked over ASGI as a browser would."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.dashboard_data import Scale, fill
from tests.support.dashboard_site import Site, dashboard_site
from tests.support.people import Person

REPOSITORIES = (100, 101)
"""What ada can read."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, migrated_sqlite: Path) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("dashboard")
    me = Person("Ada", {"octo": "active"}, {}, list(REPOSITORIES))
    roles = {"dashboard_operators": "octo/on-call", "dashboard_admins": "@grace"}
    with dashboard_site(folder, migrated_sqlite, me, **roles) as made:
        fill(made.database, Scale(tasks=300, days=60))
        yield made


@pytest.fixture
def ada() -> Person:
    """A viewer: a member who can read two of the five repositories."""
    return Person("Ada", {"octo": "active"}, {}, list(REPOSITORIES))


@pytest.fixture
def grace() -> Person:
    """An admin."""
    return Person("grace", {"octo": "active"}, {}, [100, 101, 102, 103, 104])


@pytest.fixture
def linus() -> Person:
    """An operator."""
    return Person("linus", {"octo": "active"}, {("octo", "on-call"): "active"}, [100])
