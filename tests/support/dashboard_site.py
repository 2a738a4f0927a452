"""One dashboard with all around it: a database, a queue that only remembers, and GitHub's sign-in doubled."""

import re
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import httpx
import uvicorn
from fastapi import FastAPI
from fastapi.testclient import TestClient
from pydantic import SecretStr

from bot.dashboard.tokens import make_link_word
from bot.web import create_app
from store.database import Database
from store.settings import Settings
from tests.support.people import CLIENT_ID, CLIENT_SECRET, People, Person, github_people
from tests.support.rows import QueueOfNames, settings
from tests.support.services import free_port, wait_until

PAGES = ("/overview", "/models", "/tasks", "/tasks/1", "/tasks/1/attempts/1/steps", "/budgets", "/queue", "/numbers")


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
        """A browser of its own, signed in nowhere, that asks over ASGI."""
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

    @contextmanager
    def served(self) -> Iterator[str]:
        """Serve on a port of its own, for a real browser; yields the address."""
        port = free_port()
        server = uvicorn.Server(uvicorn.Config(self.app, port=port, log_config=None, timeout_graceful_shutdown=1))
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        wait_until(lambda: server.started, what="the dashboard")
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            server.should_exit = True
            thread.join(15)


@contextmanager
def dashboard_site(folder: Path, template: Path, me: Person, **changes: Any) -> Iterator[Site]:
    """Make a site whose database is a copy of `template`'s, for members of the organisation `octo`."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "acrouter.sqlite3"
    with closing(sqlite3.connect(template)) as whole, closing(sqlite3.connect(file)) as copy:
        whole.backup(copy)  # what lies in its log, too
    database = Database(f"sqlite:///{file}")
    with github_people(me) as people:
        values: dict[str, Any] = {
            "data_dir": folder,
            "models_file": folder / "models.yaml",
            "github_webhook_secret": SecretStr("s" * 32),
            "github_client_id": CLIENT_ID,
            "github_client_secret": SecretStr(CLIENT_SECRET),
            "github_web_url": people.url,
            "github_api_url": people.url,
            "dashboard_allowed": "octo",
        }
        yield Site(settings(**(values | changes)), database, QueueOfNames(), people)
    database.dispose()


def sign_in(browser: TestClient, people: People) -> Any:
    """Go to GitHub and come back; returns the last answer."""
    there = browser.get("/sign-in/github").headers["location"]
    assert there.startswith(people.url)
    back = httpx.get(there, follow_redirects=False).headers["location"]
    return browser.get(back)


def csrf_of(html: str) -> str:
    found = re.search(r'name="csrf" value="([0-9a-f]{64})"', html)
    assert found is not None
    return found[1]
