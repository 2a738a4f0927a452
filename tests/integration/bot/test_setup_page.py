"""docs/setup.md, followed to the letter: credentials, `.env`, the App installed, the onboarding PR, a first task."""

import re
from pathlib import Path

import pytest

from bot.github_app.credentials import Credentials, keep
from bot.github_app.place import Place
from store.database import Database
from store.settings import load_settings
from store.states import TaskState
from tests.support.github.server import GitHubServer
from tests.support.world import World, running_world
from workers.onboarding import BRANCH
from workers.sweeps import sweep

PAGE = Path(__file__).resolve().parents[3] / "docs" / "setup.md"


def install(world: World, shop: GitHubServer) -> None:
    """Somebody installs the App on `acme/shop`."""
    [hosted] = shop._proxy.hosted.values()
    about = {"id": hosted.id, "full_name": hosted.full_name, "private": False}
    installation = {"id": shop.installation_id, "account": {"login": "acme"}}
    sender = {"login": "acme", "type": "User"}
    told = {"action": "created", "installation": installation, "repositories": [about], "sender": sender}
    shop._sender.send("installation", told)
    world.settle()


def test_from_nothing_to_a_merged_onboarding_pr_and_a_first_task(
    shop: GitHubServer, tmp_path: Path, sqlite_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    made = Credentials(shop.app_id, shop.app_slug, "", shop.private_key_pem, shop.webhook_secret)
    lines = keep(made, Path(".acrouter"), Place.of(shop.base_url, shop.base_url), "https://acrouter.example.com")
    lines["ACROUTER_GITHUB_WRITE_PAUSE_S"] = "0"  # the test's own
    Path(".env").write_text("".join(f"{name}={value}\n" for name, value in lines.items()))

    with running_world(shop, load_settings(), sqlite_database) as world:
        install(world, shop)
        sweep(world.runtime)
        world.settle()
        [proposed] = shop.pull_requests()
        assert (proposed["title"], proposed["head"]["ref"]) == ("Configure acrouter", BRANCH)

        shop.label(shop.open_issue("Before the merge"), "acrouter")
        world.settle()
        assert world.tasks() == [], "nothing happens before the merge"

        shop.merge(proposed["number"])
        shop.label(shop.open_issue("After the merge"), "acrouter")
        world.settle()
        assert [(task.title, task.state) for task in world.tasks()] == [("After the merge", TaskState.QUEUED)]


def test_every_command_and_setting_on_the_page_is_there() -> None:
    from typer.main import get_command

    from bot.cli.main import app
    from store.settings import PREFIX, Settings

    text = PAGE.read_text(encoding="utf-8")
    known = {PREFIX + name.upper() for name in Settings.model_fields}
    assert set(re.findall(rf"\b{PREFIX}[A-Z_]+\b", text)) <= known
    commands = get_command(app).commands  # type: ignore[attr-defined]
    seen = set()
    for line in re.findall(r"acrouter ((?:[a-z-]+ ?)+)", "\n".join(re.findall(r"`[^`\n]+`|^\.venv.*$", text, re.M))):
        first, *rest = line.split()
        seen.add(first)
        assert first in commands, f"docs/setup.md names `acrouter {first}`"
        if rest and hasattr(commands[first], "commands"):
            assert rest[0] in commands[first].commands, f"docs/setup.md names `acrouter {first} {rest[0]}`"
    assert {"doctor", "github-app", "up", "worker", "beat"} <= seen
