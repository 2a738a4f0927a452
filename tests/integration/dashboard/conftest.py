"""The dashboard on a database with a made-up past, asked over ASGI as a browser would."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from pydantic import SecretStr

from bench.dashboard_data import Scale, fill
from bot.dashboard.tokens import make_link_word
from bot.web import create_app
from store import migrations
from store.database import Database
from store.settings import Settings
from tests.support.people import CLIENT_ID, CLIENT_SECRET, People, Person, github_people
from tests.support.rows import QueueOfNames, settings

REPOSITORIES = (100, 101)
"""What ada can read."""


@dataclass
class Site:
    """One installation's web part."""

    settings: Settings
    database: Database
    queue: QueueOfNames
    people: People

    @cached_property
    def app(self) -> FastAPI:
        app = create_app(self.settings, self.database, self.queue)
        app.state.board.facts.max_age_s = 0.0  # a test does not wait a second for what it changed
        return app

    def browser(self) -> TestClient:
        """A browser of its own, signed in nowhere."""
        return TestClient(
            self.app, base_url="http://127.0.0.1", headers={"accept": "text/html"}, follow_redirects=False
        )

    def as_local_admin(self) -> TestClient:
        browser = self.browser()
        answer = browser.post("/sign-in/link", data={"word": make_link_word(self.database)})
        assert answer.headers["location"] == "/overview"
        return browser

    def as_person(self, person: Person) -> TestClient:
        """Sign in with GitHub, following it there and back."""
        browser = self.browser()
        self.people.me = person
        answer = sign_in(browser, self.people)
        assert answer.headers["location"] == "/overview", answer.text
        return browser


def sign_in(browser: TestClient, people: People):  # type: ignore[no-untyped-def]
    """Go to GitHub and come back; returns the last answer."""
    import httpx

    there = browser.get("/sign-in/github").headers["location"]
    assert there.startswith(people.url)
    back = httpx.get(there, follow_redirects=False).headers["location"]
    return browser.get(back)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder: Path = tmp_path_factory.mktemp("dashboard")
    database = Database(f"sqlite:///{folder / 'acrouter.sqlite3'}")
    migrations.upgrade(database)
    fill(database, Scale(tasks=300, days=60))
    ada = Person("Ada", {"octo": "active"}, {}, list(REPOSITORIES))
    with github_people(ada) as people:
        configured = settings(
            data_dir=folder,
            models_file=folder / "models.yaml",
            github_webhook_secret=SecretStr("s" * 32),
            github_client_id=CLIENT_ID,
            github_client_secret=SecretStr(CLIENT_SECRET),
            github_web_url=people.url,
            github_api_url=people.url,
            dashboard_allowed="octo",
            dashboard_operators="octo/on-call",
            dashboard_admins="@grace",
        )
        yield Site(configured, database, QueueOfNames(), people)
    database.dispose()


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
