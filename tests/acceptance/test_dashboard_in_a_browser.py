"""The dashboard in a real Chromium: every page, phone and desktop, by mouse and keyboard, without a complaint.

One server on a made-up past serves all stories. Screenshots are kept in .cache/screenshots, to be looked at.
"""

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import uvicorn
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright
from pydantic import SecretStr
from sqlmodel import select

from bench.dashboard_data import Scale, fill
from bot.dashboard.tokens import make_link_word
from bot.web import create_app
from store import migrations
from store.database import Database
from store.states import AttemptState, TaskKind, TaskState, Trigger
from store.tables import Attempt, History, Task
from store.types import utc_now
from tests.support.npm import CACHE, node_modules
from tests.support.people import CLIENT_ID, CLIENT_SECRET, People, Person, github_people
from tests.support.rows import QueueOfNames, settings
from tests.support.services import find_program, free_port, wait_until

pytestmark = [pytest.mark.browser, pytest.mark.node, pytest.mark.timeout(300)]

SHOTS = CACHE / "screenshots"
PAGES = {
    "overview": "/overview",
    "models": "/models",
    "tasks": "/tasks",
    "task": "/tasks/77",
    "budgets": "/budgets",
    "queue": "/queue",
    "numbers": "/numbers",
}
DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}


@dataclass
class Site:
    url: str
    database: Database
    people: People

    def link(self) -> str:
        return f"{self.url}/sign-in/link/{make_link_word(self.database)}"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("browser")
    ada = Person("ada", {"octo": "active"}, {}, [100])
    with github_people(ada) as people, served(folder / "full", people, tasks=400) as made:
        yield made


@contextmanager
def served(folder: Path, people: People, *, tasks: int) -> Iterator[Site]:
    database = Database(f"sqlite:///{folder / 'acrouter.sqlite3'}")
    migrations.upgrade(database)
    if tasks:
        fill(database, Scale(tasks=tasks, days=60))
    configured = settings(
        data_dir=folder,
        models_file=folder / "models.yaml",
        github_webhook_secret=SecretStr("s" * 32),
        github_client_id=CLIENT_ID,
        github_client_secret=SecretStr(CLIENT_SECRET),
        github_web_url=people.url,
        github_api_url=people.url,
        dashboard_allowed="octo",
    )
    port = free_port()
    app = create_app(configured, database, QueueOfNames())
    server = uvicorn.Server(uvicorn.Config(app, port=port, log_config=None, timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    wait_until(lambda: server.started, what="the dashboard")
    try:
        yield Site(f"http://127.0.0.1:{port}", database, people)
    finally:
        server.should_exit = True
        thread.join(15)
        database.dispose()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=find_program("chromium"), args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        yield browser
        browser.close()


@dataclass
class Watched:
    """A page whose complaints are noted."""

    page: Page
    complaints: list[str]
    hosts: set[str]


@contextmanager
def watched(context: BrowserContext) -> Iterator[Watched]:
    page = context.new_page()
    noted = Watched(page, [], set())
    page.on("console", lambda message: noted.complaints.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: noted.complaints.append(str(error)))
    page.on("request", lambda request: noted.hosts.add(request.url.split("/")[2].split(":")[0]))
    yield noted
    page.close()
    assert noted.complaints == []
    assert noted.hosts <= {"127.0.0.1"}, "no request to another host"


@pytest.fixture(scope="module")
def admin_state(chromium: Browser, site: Site) -> str:
    """What a browser holds after the one-time link: cookies, for contexts of their own."""
    context = chromium.new_context()
    page = context.new_page()
    page.goto(site.link())
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Overview", level=1)).to_be_visible()
    path = SHOTS / "state.json"
    context.storage_state(path=path)
    context.close()
    return str(path)


def serious_findings(page: Page) -> list[str]:
    page.evaluate((node_modules() / "axe-core" / "axe.min.js").read_text(encoding="utf-8"))
    found = page.evaluate(
        "axe.run({runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']})"
    )
    return [
        f"{one['id']}: {one['help']}: {node['html'][:160]}"
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"][:3]
    ]


@pytest.mark.parametrize(
    ("device", "size", "scheme"),
    [("desktop", DESKTOP, "light"), ("dark", DESKTOP, "dark"), ("phone", PHONE, "light")],
    ids=["desktop", "dark", "phone"],
)
def test_every_page_is_accessible_and_quiet(
    chromium: Browser, site: Site, admin_state: str, device: str, size: dict[str, int], scheme: str
) -> None:
    context = chromium.new_context(viewport=size, color_scheme=scheme, storage_state=admin_state)  # type: ignore[arg-type]
    for name, path in PAGES.items():
        with watched(context) as noted:
            noted.page.goto(site.url + path)
            assert noted.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{path} is too wide"
            assert serious_findings(noted.page) == [], path
            noted.page.screenshot(path=SHOTS / f"{name}-{device}.png", full_page=True)
    context.close()


def test_nothing_yet_is_a_page_too(chromium: Browser, site: Site, tmp_path: Path) -> None:
    with served(tmp_path, site.people, tasks=0) as empty:
        context = chromium.new_context(viewport=DESKTOP)  # type: ignore[arg-type]
        with watched(context) as noted:
            noted.page.goto(empty.link())
            noted.page.get_by_role("button", name="Sign in").click()
            expect(noted.page.get_by_text("No task yet.")).to_be_visible()
            for path in ("/models", "/tasks", "/budgets", "/queue"):
                noted.page.goto(empty.url + path)
            assert serious_findings(noted.page) == []
        context.close()


def test_from_the_overview_down_to_a_step(chromium: Browser, site: Site, admin_state: str) -> None:
    context = chromium.new_context(viewport=DESKTOP, storage_state=admin_state)  # type: ignore[arg-type]
    with watched(context) as noted:
        page = noted.page
        page.goto(f"{site.url}/overview")
        expect(page.locator(".lead")).to_contain_text("a merged PR")
        expect(page.locator(".lead")).to_contain_text("because")
        expect(page.locator(".chart canvas")).to_have_count(2)
        page.get_by_role("link", name="90 days").click()
        expect(page.get_by_role("link", name="90 days")).to_have_attribute("aria-current", "true")
        page.get_by_role("link", name="Tasks", exact=True).click()
        page.get_by_label("Words in the title").fill("refund")
        page.get_by_label("Words in the title").press("Enter")
        expect(page).to_have_url(re.compile("text=refund"))
        page.get_by_label("State").select_option("merged")  # answers at once
        expect(page).to_have_url(re.compile("state=merged"))
        first = page.locator("td.title a").first
        assert "refund" in (first.text_content() or "")
        first.click()
        expect(page.get_by_role("heading", name="Attempts")).to_be_visible()
        opened = page.locator("details.attempt[open]").first
        opened.get_by_text("Step by step").click()
        expect(opened.locator(".steps .step").first).to_contain_text("I look.")
    context.close()


def test_by_keyboard_alone(chromium: Browser, site: Site, admin_state: str) -> None:
    context = chromium.new_context(viewport=DESKTOP, storage_state=admin_state)  # type: ignore[arg-type]
    with watched(context) as noted:
        page = noted.page
        page.goto(f"{site.url}/overview")
        page.keyboard.press("Tab")
        expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
        for _ in range(3):
            page.keyboard.press("Tab")
        expect(page.get_by_role("link", name="Models", exact=True)).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="Models", level=1)).to_be_visible()
    context.close()


def test_a_running_tasks_steps_appear_as_they_happen(chromium: Browser, site: Site, admin_state: str) -> None:
    with site.database.session() as session:
        decision = session.exec(select(Attempt.decision_id).limit(1)).one()
        task = Task(
            repository_id=100,
            kind=TaskKind.ISSUE,
            trigger=Trigger.LABEL,
            target="100/issues/9",
            target_number=9,
            title="Live",
            state=TaskState.ATTEMPTING,
        )
        session.add(task)
        session.flush()
        assert task.id is not None
        attempt = Attempt(task_id=task.id, decision_id=decision, number=1, model="small")
        session.add(attempt)
        session.add(History(task_id=task.id, state=TaskState.ATTEMPTING, message="Attempt 1: small is working."))
    context = chromium.new_context(viewport=DESKTOP, storage_state=admin_state)  # type: ignore[arg-type]
    with watched(context) as noted:
        page = noted.page
        page.goto(f"{site.url}/tasks/{task.id}")
        expect(page.get_by_text("No step yet.")).to_be_visible()
        for number in (1, 2):
            with site.database.session() as session:
                row = session.get_one(Attempt, attempt.id)
                row.steps = number
                row.trajectory = {
                    "messages": [
                        {
                            "role": "assistant",
                            "content": f"Thought {one}.",
                            "extra": {"actions": [{"command": "ls", "tool_call_id": str(one)}], "cost": 0.01},
                        }
                        for one in range(1, number + 1)
                    ]
                }
                session.add(row)
            expect(page.get_by_text(f"Thought {number}.")).to_be_visible()
        assert task.id is not None
        with site.database.session() as session:
            kept = session.get_one(Task, task.id)
            kept.state, kept.updated_at, kept.finished_at = TaskState.NO_FIX, utc_now(), utc_now()
            session.get_one(Attempt, attempt.id).state = AttemptState.LOST
            session.add(kept)
            session.add(History(task_id=task.id, state=TaskState.NO_FIX, message="None may be published."))
        expect(page.locator(".head .chip")).to_have_text("no fix found")
        expect(page.get_by_text("None may be published.").first).to_be_visible()
    context.close()


def test_a_viewer_signs_in_with_github_and_may_not_act(chromium: Browser, site: Site) -> None:
    context = chromium.new_context(viewport=DESKTOP)  # type: ignore[arg-type]
    with watched(context) as noted:
        page = noted.page
        page.goto(f"{site.url}/budgets")
        page.get_by_role("link", name="Sign in with GitHub").click()
        expect(page.get_by_role("heading", name="Budgets", level=1)).to_be_visible()
        expect(page.get_by_text("ada · viewer")).to_be_visible()
        expect(page.get_by_role("button", name="Change")).to_have_count(0)
        page.goto(f"{site.url}/queue")
        expect(page.get_by_role("button", name="Retry")).to_have_count(0)
        page.get_by_role("button", name="Sign out").click()
        expect(page.get_by_role("link", name="Sign in with GitHub")).to_be_visible()
        page.goto(f"{site.url}/tasks")
        expect(page.get_by_role("link", name="Sign in with GitHub")).to_be_visible()
    context.close()


def test_an_admin_changes_a_cap(chromium: Browser, site: Site, admin_state: str) -> None:
    context = chromium.new_context(viewport=PHONE, storage_state=admin_state)  # type: ignore[arg-type]
    with watched(context) as noted:
        page = noted.page
        page.goto(f"{site.url}/budgets")
        page.get_by_label("New cap, US dollars").first.fill("33.00")
        page.get_by_role("button", name="Change").first.click()
        expect(page.get_by_role("status")).to_contain_text("It holds from the next call on")
        expect(page.get_by_text("set by localhost").first).to_be_visible()
    context.close()


def test_pages_are_read_without_scripts(chromium: Browser, site: Site, admin_state: str) -> None:
    context = chromium.new_context(viewport=DESKTOP, storage_state=admin_state, java_script_enabled=False)  # type: ignore[arg-type]
    page = context.new_page()
    page.goto(f"{site.url}/overview")
    expect(page.get_by_role("heading", name="What each model is worth")).to_be_visible()
    page.goto(f"{site.url}/tasks?state=merged")
    page.locator("td.title a").first.click()
    expect(page.locator("a", has_text="All 4 steps").last).to_be_attached()
    context.close()
