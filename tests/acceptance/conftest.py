"""The whole product: a GitHub, an installation in processes of its own, real bugs and scripted models.

Processes take seconds to start, so the stories of a module share a GitHub and an installation. Each has a repository of
its own, and all that it looks at begins with it.
"""

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
from tests.support.bugs import SCRIPTED_KEY, MakeBug, make_bug
from tests.support.github.server import GitHubServer
from tests.support.held_models import HeldModels
from tests.support.installation import ROOT, Installation
from tests.support.services import create_postgres_database

__all__ = ["make_bug"]

CONFIG = "exploration: off\n"
"""Without exploration the same evidence gives the same choice."""


class Host(Protocol):
    def __call__(self, name: str, config: str = CONFIG) -> str: ...


@pytest.fixture(scope="module")
def github(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GitHubServer]:
    """A stateful GitHub; the last test fails where a request to it is not as GitHub's description has it."""
    with GitHubServer(tmp_path_factory.mktemp("github")) as server:
        yield server


@pytest.fixture(scope="module")
def bugs() -> tuple[str, ...]:
    """The names of the bugs that a module's stories are about."""
    raise NotImplementedError("a module whose stories use scripted models says which bugs they know")


@pytest.fixture(scope="module")
def forked() -> bool:
    """Whether the processes of a module's stories are forked, as `installed` says."""
    return True


@pytest.fixture(scope="module")
def endpoint(make_bug: MakeBug, bugs: tuple[str, ...]) -> Iterator[HeldModels]:
    """The scripted models, listening; their key is SCRIPTED_KEY."""
    with HeldModels([make_bug(name) for name in bugs], api_key=SCRIPTED_KEY) as models:
        yield models


@pytest.fixture
def host(installation: Installation, github: GitHubServer, make_bug: MakeBug) -> Host:
    """Begin a story: put the project of a bug on GitHub, with a configuration, and return the repository's name."""

    def put(name: str, config: str = CONFIG) -> str:
        repository = f"acme/tool-{installation.begin_story()}"
        github.create_repository(repository, make_bug(name).git_dir)
        github.focus(repository)
        github.push("main", {".acrouter.yml": config}, message="Configure acrouter")
        return repository

    return put


@pytest.fixture(scope="module")
def installation(
    tmp_path_factory: pytest.TempPathFactory,
    postgres_base: str,
    redis_url: str,
    github: GitHubServer,
    endpoint: HeldModels,
    forked: bool,
) -> Iterator[Installation]:
    """An installation on Postgres and Redis whose web part and beat run; a story starts its workers."""
    folder = tmp_path_factory.mktemp("installed") / "acrouter"
    services = served_by(postgres_base, redis_url)
    with installed(folder, github, endpoint, SKILLED, services, forked=forked) as made:
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
    *,
    forked: bool = True,
) -> Iterator[Installation]:
    """Yield an installation in a new `folder`, none of whose processes runs yet; end them all afterwards.

    Unless they are `forked`, each is a program of its own, as an operator starts it.
    """
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
        "ACROUTER_MODEL_TIMEOUT_S": "90",
        **settings,
    }
    (folder / "data").mkdir()
    database = Database(environment.get("DATABASE_URL") or f"sqlite:///{folder / 'data' / 'acrouter.sqlite3'}")
    migrations.upgrade(database)
    made = Installation(folder, environment, database, forked=forked)
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
