"""The dashboard in a real Chromium: every page, phone and desktop, by mouse and keyboard, without a complaint.

One server on a past of 100,000 tasks serves all stories. Screenshots are kept in .cache/screenshots, to be looked at.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect
from sqlmodel import col, select

from bench.dashboard_copies import fill_by_copies
from bot.dashboard.tokens import make_link_word
from store.database import Database
from store.states import AttemptState, DeliveryState, TaskKind, TaskState, Trigger
from store.tables import Attempt, Delivery, History, Task
from store.types import utc_now
from tests.support.browser import (
    DESKTOP,
    PHONE,
    SHOTS,
    SMALL_PHONE,
    look_at,
    running_chromium,
    serious_findings,
    sign_in_by_link,
    watched,
)
from tests.support.dashboard_site import Site, dashboard_site
from tests.support.hostile import add_hostile_task
from tests.support.people import Person

pytestmark = [pytest.mark.browser, pytest.mark.node, pytest.mark.timeout(300)]

TASKS = 100_000
PAGES = {
    "overview": "/overview",
    "models": "/models",
    "tasks": "/tasks",
    "task": f"/tasks/{TASKS - 23}",
    "budgets": "/budgets",
    "queue": "/queue",
    "numbers": "/numbers",
}
LOOKS = {
    "desktop": (DESKTOP, "light"),
    "dark": (DESKTOP, "dark"),
    "phone": (PHONE, "light"),
}


@dataclass
class Served:
    url: str
    site: Site

    @property
    def database(self) -> Database:
        return self.site.database

    def me(self, login: str) -> None:
        """Whoever signs in to GitHub next is this person."""
        teams = {("octo", "on-call"): "active"} if login == "linus" else {}
        self.site.people.me = Person(login, {"octo": "active"}, teams, [100])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, migrated_sqlite: Path) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("browser")
    ada = Person("ada", {"octo": "active"}, {}, [100])
    with dashboard_site(folder, migrated_sqlite, ada, dashboard_operators="octo/on-call") as made:
        fill_by_copies(made.database, TASKS)
        made.app.state.board.facts.current()  # no page waits for the first look, which may take long on a busy machine
        with made.served() as url:
            yield Served(url, made)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with running_chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def admin_state(chromium: Browser, site: Served) -> str:
    """What a browser holds after the one-time link: cookies, for contexts of their own."""
    context = chromium.new_context()
    sign_in_by_link(context.new_page(), site.url, make_link_word(site.database))
    path = SHOTS / "state.json"
    context.storage_state(path=path)
    context.close()
    return str(path)


@pytest.mark.parametrize("look", LOOKS)
def test_every_page_is_accessible_and_quiet(chromium: Browser, site: Served, admin_state: str, look: str) -> None:
    size, scheme = LOOKS[look]
    context = chromium.new_context(viewport=size, color_scheme=scheme, storage_state=admin_state)  # type: ignore[arg-type]
    for name, path in PAGES.items():
        with watched(context) as noted:
            look_at(noted.page, site.url + path, f"{name}-{look}")
    context.close()


def test_a_small_phone_shows_where_one_is_and_how_to_sign_out(
    chromium: Browser, site: Served, admin_state: str
) -> None:
    context = chromium.new_context(viewport=SMALL_PHONE, storage_state=admin_state)
    with watched(context) as noted:
        page = noted.page
        look_at(page, f"{site.url}/queue", "queue-small-phone")
        expect(page.get_by_role("button", name="Sign out")).to_be_in_viewport(ratio=1)
        for name in ("Overview", "Queue"):
            expect(page.get_by_role("link", name=name, exact=True)).to_be_in_viewport(ratio=0.95)
        page.set_viewport_size({"width": 240, "height": 740})
        page.reload()
        expect(page.get_by_role("link", name="Queue", exact=True)).to_be_in_viewport(ratio=0.95)
    context.close()


def test_nothing_yet_is_a_page_too(chromium: Browser, site: Served, tmp_path: Path, migrated_sqlite: Path) -> None:
    with dashboard_site(tmp_path, migrated_sqlite, Person("ada")) as empty, empty.served() as url:
        context = chromium.new_context(viewport=PHONE)
        with watched(context) as noted:
            sign_in_by_link(noted.page, url, make_link_word(empty.database))
            expect(noted.page.get_by_text("No task yet.")).to_be_visible()
            for name in ("overview", "models", "tasks", "budgets", "queue"):
                look_at(noted.page, f"{url}/{name}", f"{name}-empty")
        context.close()


def test_from_the_overview_down_to_a_step(chromium: Browser, site: Served, admin_state: str) -> None:
    context = chromium.new_context(viewport=DESKTOP, storage_state=admin_state)
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


def test_filters_go_together_and_pages_follow(chromium: Browser, site: Served, admin_state: str) -> None:
    context = chromium.new_context(viewport=DESKTOP, storage_state=admin_state)
    with watched(context) as noted:
        page = noted.page
        page.goto(f"{site.url}/tasks")
        filters = {"repository": "octo/api", "model": "huge", "dimension": "algorithm", "person": "linus"}
        for name, choice in filters.items():
            page.locator(f"select[name={name}]").select_option(choice)  # answers at once
            expect(page).to_have_url(re.compile(re.escape(choice).replace("/", "(/|%2F)")))
        day = (utc_now() - timedelta(days=300)).date().isoformat()
        page.get_by_label("From").fill(day)
        page.get_by_role("button", name="Filter").click()
        expect(page).to_have_url(re.compile(f"since={day}"))
        expect(page.locator("td.title > a")).to_have_count(50)
        newest = _ids(page)
        page.get_by_role("link", name="Older tasks").click()
        expect(page.get_by_role("link", name="Newest")).to_be_visible()
        assert max(_ids(page)) < min(newest)
        page.goto(f"{site.url}/tasks?text=nowhere")
        expect(page.get_by_text("No task fits this filter.")).to_be_visible()
        assert serious_findings(page) == []
    context.close()


def _ids(page: Page) -> list[int]:
    links = page.locator("td.title > a")
    return [int((link.get_attribute("href") or "").rsplit("/", 1)[-1]) for link in links.all()]


def test_by_keyboard_alone(chromium: Browser, site: Served, admin_state: str) -> None:
    context = chromium.new_context(viewport=DESKTOP, storage_state=admin_state)
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


def test_a_running_tasks_steps_appear_as_they_happen(chromium: Browser, site: Served, admin_state: str) -> None:
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
    context = chromium.new_context(viewport=DESKTOP, storage_state=admin_state)
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


def test_a_viewer_signs_in_with_github_and_may_not_act(chromium: Browser, site: Served) -> None:
    context = chromium.new_context(viewport=DESKTOP)
    with watched(context) as noted:
        page = noted.page
        site.me("ada")
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


def test_a_viewer_who_tries_it_all_the_same_is_refused(chromium: Browser, site: Served) -> None:
    site.me("ada")
    context = chromium.new_context(viewport=DESKTOP)
    page = context.new_page()
    page.goto(f"{site.url}/sign-in/github")
    csrf = page.locator("input[name=csrf]").first.get_attribute("value") or ""
    html = {"accept": "text/html"}
    for path in ("/budgets/caps/day", "/queue/tasks/1/retry", "/queue/deliveries/1/retry"):
        answer = context.request.post(site.url + path, form={"csrf": csrf, "usd": "9999"}, headers=html)
        assert (answer.status, "Not allowed" in answer.text()) == (403, True), path
    context.close()


def test_an_operator_retries_what_failed(chromium: Browser, site: Served) -> None:
    with site.database.session() as session:
        query = select(Task).where(Task.repository_id == 100).order_by(col(Task.id).desc())
        task = session.exec(query).first()
        assert task is not None
        task.state, task.updated_at = TaskState.FAILED, utc_now()
        letter = Delivery(guid="dead-1", event="issues", payload=b"{}", state=DeliveryState.FAILED, reason="A bug.")
        session.add_all([task, letter])
        session.flush()
        ids = (task.id, letter.id)
    site.me("linus")
    context = chromium.new_context(viewport=PHONE)
    with watched(context) as noted:
        page = noted.page
        page.goto(f"{site.url}/sign-in/github")
        page.goto(f"{site.url}/queue")
        page.get_by_role("button", name=f"Retry task {ids[0]}").click()
        expect(page.get_by_role("status")).to_have_text("The task is back in the queue.")
        page.get_by_role("button", name="Retry delivery dead-1").click()
        expect(page.get_by_role("status")).to_have_text("The webhook is back in the inbox.")
        expect(page.get_by_role("button", name="Retry")).to_have_count(0)
    context.close()
    assert (site.site.queue.tasks[-1], site.site.queue.deliveries[-1]) == ids


def test_what_strangers_wrote_is_shown_and_obeyed_by_no_browser(
    chromium: Browser, site: Served, admin_state: str
) -> None:
    task = add_hostile_task(site.database)
    context = chromium.new_context(viewport=PHONE, storage_state=admin_state)
    with watched(context) as noted:
        page = noted.page
        pages = {"overview": "/overview", "queue": "/queue", "task": f"/tasks/{task}"}
        for name, path in {**pages, "steps": f"/tasks/{task}/attempts/1/steps"}.items():
            look_at(page, site.url + path, f"{name}-hostile", rules=name == "task")
            assert page.locator("img, iframe, object").count() == 0, path
            page.keyboard.press("Tab")
        page.goto(f"{site.url}/tasks/{task}")
        expect(page.get_by_role("heading", level=1)).to_contain_text("<script>alert(1)</script>")
        expect(page.locator("[aria-live=polite] .step").last).to_be_visible()
    context.close()
    with site.database.session() as session:
        session.get_one(Task, task).state = TaskState.NO_FIX


def test_an_admin_changes_a_cap(chromium: Browser, site: Served, admin_state: str) -> None:
    context = chromium.new_context(viewport=PHONE, storage_state=admin_state)
    with watched(context) as noted:
        page = noted.page
        page.goto(f"{site.url}/budgets")
        page.get_by_label("New cap, US dollars").first.fill("33.00")
        page.get_by_role("button", name="Change").first.click()
        expect(page.get_by_role("status")).to_contain_text("It holds from the next call on")
        expect(page.get_by_text("set by localhost").first).to_be_visible()
        page.get_by_label("New cap of each repository a day").fill("5")
        page.get_by_role("button", name="Set the cap of each repository a day").click()
        expect(page.get_by_role("row", name="octo/shop repository a day")).to_contain_text("$5.00")
        expect(page.get_by_role("region", name="Audit log")).to_contain_text("repository_day")
        page.get_by_role("button", name="Back to the setting of repository day").click()
        expect(page.get_by_text("None is set.")).to_be_visible()
    context.close()


def test_pages_are_read_without_scripts(chromium: Browser, site: Served, admin_state: str) -> None:
    context = chromium.new_context(viewport=DESKTOP, storage_state=admin_state, java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{site.url}/overview")
    expect(page.get_by_role("heading", name="What each model is worth")).to_be_visible()
    page.goto(f"{site.url}/tasks?state=merged")
    page.locator("td.title a").first.click()
    expect(page.locator("a", has_text="All 4 steps").last).to_be_attached()
    context.close()
