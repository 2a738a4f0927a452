"""Pages: with nothing, with much, and by a bounded number of queries."""

import csv
import io
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from pydantic import SecretStr
from sqlalchemy import event

from bench.dashboard_data import Scale, fill
from bot.dashboard.export import NAMES
from bot.dashboard.tokens import make_link_word
from bot.web import create_app
from store import migrations
from store.database import Database
from store.settings import Settings
from store.states import AttemptState
from store.types import utc_now
from tests.support.dashboard_site import Site
from tests.support.rows import QueueOfNames, add_attempt, add_task, settings
from workers.breakers import FAILURES, EndpointBreakers

PAGES = ("/overview", "/models", "/tasks", "/tasks/5", "/tasks/5/attempts/1/steps", "/budgets", "/queue")
MOST_QUERIES = 20
"""The session, eight to bring the facts level with the database, and the page's own."""


def browser_of(database: Database, folder: Path) -> TestClient:
    configured: Settings = settings(
        data_dir=folder, models_file=folder / "none.yaml", github_webhook_secret=SecretStr("s" * 32)
    )
    app = create_app(configured, database, QueueOfNames())
    app.state.board.facts.current()
    app.state.board.facts.max_age_s = 0.0
    browser = TestClient(app, base_url="http://127.0.0.1", headers={"accept": "text/html"})
    browser.post("/sign-in/link", data={"word": make_link_word(database)})
    return browser


@contextmanager
def counted(database: Database) -> Iterator[list[str]]:
    queries: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        if not statement.startswith(("BEGIN", "PRAGMA")):
            queries.append(statement)

    event.listen(database.engine, "before_cursor_execute", note)
    try:
        yield queries
    finally:
        event.remove(database.engine, "before_cursor_execute", note)


def test_with_nothing_each_page_says_what_to_do_next(sqlite_database: Database, tmp_path: Path) -> None:
    browser = browser_of(sqlite_database, tmp_path)
    hints = {
        "/overview": "acrouter demo",
        "/models": "models.yaml",
        "/tasks": "/route fix",
        "/budgets": "No call was made yet",
        "/queue": "acrouter worker",
    }
    for path, hint in hints.items():
        answer = browser.get(path)
        assert answer.status_code == 200, path
        assert hint in answer.text, path


def test_a_page_asks_the_database_as_often_for_many_tasks_as_for_few(tmp_path: Path) -> None:
    counts = []
    for tasks in (10, 400):
        database = Database(f"sqlite:///{tmp_path / str(tasks)}.sqlite3")
        migrations.upgrade(database)
        fill(database, Scale(tasks=tasks, days=tasks))
        browser = browser_of(database, tmp_path)
        counts.append({page: _queries(browser, database, page) for page in PAGES})
        database.dispose()
    few, many = counts
    assert many == few
    assert max(many.values()) <= MOST_QUERIES, many


def _queries(browser: TestClient, database: Database, page: str) -> int:
    browser.get(page)
    with counted(database) as queries:
        assert browser.get(page).status_code == 200
    return len(queries)


def test_the_api_describes_itself_and_answers_as_it_says(site: Site) -> None:
    from jsonschema import validate

    browser = site.as_local_admin()
    description = browser.get("/api/v1/openapi.json").json()
    assert description["openapi"].startswith("3.")
    for path, methods in description["paths"].items():
        answer = browser.get(f"/api/v1{path.replace('{task_id}', '5')}")
        assert answer.status_code == 200, path
        schema = methods["get"]["responses"]["200"]["content"]["application/json"]["schema"]
        validate(answer.json(), {**schema, "components": description["components"]})


def test_every_table_comes_as_csv(site: Site) -> None:
    browser = site.as_local_admin()
    for name in NAMES:
        answer = browser.get(f"/export/{name}.csv")
        assert answer.headers["content-type"].startswith("text/csv")
        rows = list(csv.reader(io.StringIO(answer.text)))
        assert len({len(row) for row in rows}) == 1, name
        assert len(rows) > 1, name
    assert "Did you mean &#39;ledger&#39;?" in browser.get("/export/legder.csv").text


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/export/tasks.csv?state=nonsense", "there is no &#39;nonsense&#39;"),
        ("/export/tasks.csv?since=yesterday", "&#39;yesterday&#39; is no day"),
        ("/export/models.csv?days=13", "13 is not offered"),
    ],
)
def test_a_table_that_cannot_be_is_refused_before_a_byte_of_it_is_sent(site: Site, path: str, said: str) -> None:
    answer = site.as_local_admin().get(path)
    assert answer.status_code == 400
    assert said in answer.text


def test_a_filter_that_cannot_be_is_explained(site: Site) -> None:
    browser = site.as_local_admin()
    answer = browser.get("/tasks?state=mergde")
    assert answer.status_code == 400
    assert "Did you mean &#39;merged&#39;?" in answer.text
    assert browser.get("/tasks?since=yesterday").status_code == 400
    assert browser.get("/overview?days=31").status_code == 400
    assert browser.get("/api/v1/tasks?limit=100000").status_code == 400


@pytest.mark.parametrize(
    ("path", "status", "plain_status", "words"),
    [
        ("/nope", 404, 404, "There is no such page."),
        ("/tasks/abc", 404, 422, "There is no such page."),
        ("/overview?days=abc", 422, 422, "days: Input should be a valid integer"),
        ("/sign-out", 405, 405, "Method Not Allowed."),
    ],
)
def test_an_address_that_cannot_be_is_a_page_for_people_and_json_for_others(
    site: Site, path: str, status: int, plain_status: int, words: str
) -> None:
    browser = site.as_local_admin()
    shown = browser.get(path)
    assert shown.status_code == status
    assert shown.headers["content-type"].startswith("text/html")
    assert words in shown.text
    told = browser.get(path, headers={"accept": "application/json"})
    assert told.status_code == plain_status
    assert told.json()["detail"]


def test_the_last_dimension_ends_its_table_without_a_line(site: Site) -> None:
    names = re.findall(r"<th rowspan=\"\d+\"( class=\"ends\")?>", site.as_local_admin().get("/models").text)
    assert len(names) > 1
    assert [bool(name) for name in names] == [False] * (len(names) - 1) + [True]


def test_the_page_and_the_api_say_the_same(site: Site) -> None:
    browser = site.as_local_admin()
    numbers = browser.get("/api/v1/overview").json()["numbers"]
    page = browser.get("/overview").text
    assert f'<span class="big">{numbers["merged"]}</span>' in page
    assert f'<span class="big">${numbers["spend_usd"]:.2f}</span>' in page
    assert json.dumps(numbers["success"]["cases"]) in page


def test_what_is_away_is_told_where_people_look(sqlite_database: Database, tmp_path: Path) -> None:
    waits = utc_now() - timedelta(hours=2)
    task = add_task(sqlite_database, waiting_since=waits, reason="GitHub is <away>.")
    add_attempt(sqlite_database, task, state=AttemptState.FAILED)
    with sqlite_database.session() as session:
        for model in ["small", "large"] * FAILURES:
            EndpointBreakers().failed(session, model, "HTTP <503>", utc_now())
    browser = browser_of(sqlite_database, tmp_path)
    assert "GitHub is &lt;away&gt;." in browser.get("/queue").text
    assert "HTTP &lt;503&gt;" in browser.get("/queue").text, "nobody tried it within the day"
    assert "Waits since" in browser.get(f"/tasks/{task}").text
    for page in ("/models", "/queue"):
        assert "passed over" in browser.get(page).text, page


@pytest.mark.parametrize("path", ["/", "/healthz"])
def test_what_machines_ask_for_is_as_it_was(site: Site, path: str) -> None:
    answer = site.browser().get(path, headers={"accept": "application/json"})
    assert answer.status_code == 200
    assert answer.json()["status"] == "ok"
