"""A stateful GitHub with one repository, and the Forge under test."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from pydantic import SecretStr

from bot.github import GitHubForge
from store.database import Database
from store.settings import Settings
from tests.support.github.fixtures import github
from tests.support.github.server import GitHubServer
from tests.support.story import Story
from tests.support.world import World, running_world
from workers.ports import RepositoryRef

__all__ = ["github"]

REPOSITORY = "acme/shop"


@pytest.fixture
def shop(github: GitHubServer, tmp_path: Path) -> GitHubServer:
    """GitHub with `acme/shop`: a README and one module on `main`."""
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "README.md").write_text("# Shop\n")
    (folder / "cart.py").write_text("def total(prices):\n    return sum(prices[1:])\n")
    for arguments in (
        ["init", "-q", "-b", "main"],
        ["add", "."],
        ["-c", "user.name=Ada", "-c", "user.email=ada@example.com", "commit", "-q", "-m", "Begin"],
    ):
        subprocess.run(["git", *arguments], cwd=folder, check=True)
    github.create_repository(REPOSITORY, folder)
    return github


@pytest.fixture
def settings(shop: GitHubServer, tmp_path: Path) -> Settings:
    return Settings(
        _env_file=None,
        data_dir=tmp_path / "data",
        github_app_id=shop.app_id,
        github_private_key=SecretStr(shop.private_key_pem),
        github_webhook_secret=SecretStr(shop.webhook_secret),
        github_api_url=shop.base_url,
        github_web_url=shop.base_url,
        github_write_pause_s=0.0,
        onboarding="off",
    )


@pytest.fixture
def story(sqlite_database: Database) -> Story:
    return Story(sqlite_database)


@pytest.fixture
def forge(settings: Settings) -> GitHubForge:
    return GitHubForge(settings)


@pytest.fixture
def repository(shop: GitHubServer) -> RepositoryRef:
    """`acme/shop` as the store knows it."""
    found = httpx.get(f"{shop.base_url}/repos/{REPOSITORY}").json()
    return RepositoryRef(found["id"], shop.installation_id, REPOSITORY)


@pytest.fixture
def world(shop: GitHubServer, settings: Settings, sqlite_database: Database) -> Iterator[World]:
    """acrouter, installed on `acme/shop`."""
    with running_world(shop, settings, sqlite_database) as running:
        yield running
