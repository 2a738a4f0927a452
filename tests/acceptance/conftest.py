"""The whole product: a GitHub, an installation in processes of its own, real bugs and scripted models."""

import os
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import pytest
import redis

from bot.demo.bugs import find_bug
from bot.demo.scripted import ScriptedEndpoint
from bot.demo.scripted.models import SKILLED, write_models_file
from store import migrations
from store.database import Database
from tests.support.bugs import SCRIPTED_KEY, MakeBug, all_bugs, make_bug, scripted_endpoint
from tests.support.github.fixtures import github
from tests.support.github.server import GitHubServer
from tests.support.installation import ROOT, Installation
from tests.support.services import create_postgres_database

__all__ = ["all_bugs", "github", "make_bug", "scripted_endpoint"]

REPOSITORY = "acme/tool"
CONFIG = "exploration: off\n"
"""Without exploration the same evidence gives the same choice."""


class Host(Protocol):
    def __call__(self, name: str, config: str = CONFIG) -> None: ...


@pytest.fixture
def host(github: GitHubServer, make_bug: MakeBug) -> Host:
    """Put the project of a bug on GitHub, with a configuration and the trigger label."""

    def put(name: str, config: str = CONFIG) -> None:
        github.create_repository(REPOSITORY, make_bug(name).git_dir)
        github.push("main", {".acrouter.yml": config}, message="Configure acrouter")

    return put


@pytest.fixture
def models() -> tuple[str, ...]:
    """The names of the pool's scripted models; a test module may have its own."""
    return SKILLED


@pytest.fixture
def installation(
    tmp_path: Path,
    postgres_base: str,
    redis_url: str,
    github: GitHubServer,
    scripted_endpoint: ScriptedEndpoint,
    models: tuple[str, ...],
) -> Iterator[Installation]:
    """An installation on Postgres and Redis whose web part and beat run; a test starts its workers."""
    services = served_by(postgres_base, redis_url)
    with installed(tmp_path / "acrouter", github, scripted_endpoint, models, services) as made:
        made.start_web()
        made.start_beat()
        yield made


def served_by(postgres_base: str, redis_url: str) -> dict[str, str]:
    """Return the settings of an installation with a new database and an empty broker."""
    redis.Redis.from_url(redis_url).flushall()
    database_url = create_postgres_database(postgres_base, f"acceptance_{uuid.uuid4().hex}")
    return {"DATABASE_URL": database_url, "REDIS_URL": redis_url, "ACROUTER_SANDBOX": "docker"}


@contextmanager
def installed(
    folder: Path,
    github: GitHubServer,
    endpoint: ScriptedEndpoint,
    models: tuple[str, ...],
    settings: Mapping[str, str],
) -> Iterator[Installation]:
    """Yield an installation in a new `folder`, none of whose processes runs yet; end them all afterwards."""
    folder.mkdir()
    (folder / "app.pem").write_text(github.private_key_pem)
    write_models_file(folder / "models.yaml", api_base=endpoint.api_base, api_key_env="SCRIPTED_KEY", only=models)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ACROUTER_")} | {
        "PYTHONPATH": str(ROOT),
        "SCRIPTED_KEY": SCRIPTED_KEY,
        "ACROUTER_DATA_DIR": str(folder / "data"),
        "ACROUTER_MODELS_FILE": str(folder / "models.yaml"),
        "ACROUTER_GITHUB_APP_ID": str(github.app_id),
        "ACROUTER_GITHUB_PRIVATE_KEY_FILE": str(folder / "app.pem"),
        "ACROUTER_GITHUB_WEBHOOK_SECRET": github.webhook_secret,
        "ACROUTER_GITHUB_API_URL": github.base_url,
        "ACROUTER_GITHUB_WEB_URL": github.base_url,
        "ACROUTER_GITHUB_WRITE_PAUSE_S": "0",
        "ACROUTER_ONBOARDING": "off",
        "ACROUTER_LEASE_S": "4",
        "ACROUTER_RECONCILE_EVERY_S": "1",
        "ACROUTER_MODEL_TIMEOUT_S": "20",
        **settings,
    }
    (folder / "data").mkdir()
    database = Database(environment.get("DATABASE_URL") or f"sqlite:///{folder / 'data' / 'acrouter.sqlite3'}")
    migrations.upgrade(database)
    made = Installation(folder, environment, database)
    github.webhook_url = made.webhook_url
    try:
        yield made
    finally:
        made.close()
        database.dispose()


def issue_of(name: str) -> tuple[str, str]:
    """Title and text of a bug's issue."""
    bug = find_bug(name)
    return bug.title, bug.issue
