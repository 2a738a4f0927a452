"""Both GitHubs that stories are told on, and a listener for the webhooks that they send."""

import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from github import Auth, Github, GithubIntegration
from github.Repository import Repository

from bot.demo.hub.server import LocalHub
from bot.demo.hub.story import Story
from tests.support.github.listener import Listener, listening
from tests.support.github.openapi import Violation
from tests.support.github.police import Police
from tests.support.github.server import APP_ID, WEBHOOK_SECRET, GitHubServer, usual_private_key
from tests.support.services import free_port


@dataclass(frozen=True)
class Forge:
    """A GitHub with one repository, `acme/widget`, and the credentials of an App on it."""

    story: Story
    settle: Callable[[], None]
    listener: Listener
    private_key_pem: str
    port: int

    def integration(self) -> GithubIntegration:
        auth = Auth.AppAuth(APP_ID, self.private_key_pem)
        return GithubIntegration(
            auth=auth, base_url=self.story.base_url, seconds_between_requests=0, seconds_between_writes=0
        )

    def app_token(self) -> str:
        """Return a token (JWT) of the App's own."""
        return Auth.AppAuth(APP_ID, self.private_key_pem).create_jwt()

    def token(self, **permissions: str) -> str:
        """Mint an installation token; without permissions the App's usual ones."""
        usual = dict.fromkeys(("contents", "issues", "pull_requests", "checks"), "write") | {"actions": "read"}
        app = self.integration()
        installation = app.get_repo_installation("acme", "widget")
        return app.get_access_token(installation.id, permissions=permissions or usual).token

    def repository(self, token: str = "") -> Repository:
        auth = Auth.Token(token or self.token())
        client = Github(
            auth=auth, base_url=self.story.base_url, retry=None, seconds_between_requests=0, seconds_between_writes=0
        )
        return client.get_repo("acme/widget")

    def clone_url(self, token: str) -> str:
        return f"http://x-access-token:{token}@localhost:{self.port}/acme/widget.git"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A small git repository whose default branch is not called main, with history, a folder and a binary file."""
    folder = tmp_path / "source"
    (folder / "widget").mkdir(parents=True)
    (folder / "README.md").write_text("# Widget\n", encoding="utf-8")
    (folder / "widget" / "área.py").write_text("AREA = 1\n", encoding="utf-8")
    (folder / "logo.bin").write_bytes(bytes(range(256)))
    run = folder / "run.sh"
    run.write_text("#!/bin/sh\n", encoding="utf-8")
    run.chmod(0o755)
    git(folder, "init", "--quiet", "--initial-branch=trunk")
    commit_all(folder, "The first commit\n\nWith a body.")
    (folder / "widget" / "size.py").write_text("SIZE = 1\n", encoding="utf-8")
    commit_all(folder, "Give the widget a size")
    return folder


@pytest.fixture(params=[pytest.param("emulate", marks=pytest.mark.node), "local"])
def forge(request: pytest.FixtureRequest, tmp_path: Path, source: Path) -> Iterator[Forge]:
    """The stateful GitHub that nobody here wrote, then the demo's own: each test runs on both."""
    start = on_emulate if request.param == "emulate" else on_local_hub
    with listening(WEBHOOK_SECRET) as listener, start(tmp_path, listener) as forge:
        forge.story.create_repository("acme/widget", source)
        yield forge


@contextmanager
def on_emulate(folder: Path, listener: Listener) -> Iterator[Forge]:
    with GitHubServer(folder / "github", listener.url) as server:
        yield Forge(server, server.settle, listener, server.private_key_pem, server.port)


@contextmanager
def on_local_hub(_: Path, listener: Listener) -> Iterator[Forge]:
    violations: list[Violation] = []
    key = usual_private_key()
    hub = LocalHub(free_port(), listener.url, WEBHOOK_SECRET, APP_ID, key)
    hub.app.add_middleware(Police, violations=violations)
    with hub:
        yield Forge(hub, hub.settle, listener, key, hub.port)
    assert not violations, "\n".join(map(str, violations))


def git(folder: Path, *arguments: str) -> str:
    """Run git as a developer does, and return what it printed."""
    who = ["-c", "user.name=Ada Dev", "-c", "user.email=ada@example.com", "-c", "protocol.version=2"]
    done = subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True, text=True, timeout=60)
    return done.stdout.strip()


def commit_all(folder: Path, message: str) -> str:
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", message)
    return git(folder, "rev-parse", "HEAD")
