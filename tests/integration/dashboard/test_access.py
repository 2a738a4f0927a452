"""Who may look, who may do more, and what a stranger, a viewer or another site can not."""

import csv
import io
import re
from datetime import timedelta

from sqlmodel import select

from bot.dashboard.tokens import create_token, revoke_token
from store.states import DeliveryState, TaskKind, TaskState, Trigger
from store.tables import ApiToken, AuditEntry, CapOverride, DashboardSession, Decision, Delivery, Repository, Task
from store.types import utc_now
from tests.integration.dashboard.conftest import REPOSITORIES
from tests.support.dashboard_site import PAGES, Site, csrf_of
from tests.support.people import Person


def test_machines_without_a_token_are_refused(site: Site) -> None:
    browser = site.browser()
    assert browser.get("/api/v1/overview").status_code == 401
    assert browser.get("/metrics").status_code == 401
    assert browser.get("/api/v1/overview", headers={"Authorization": "Bearer acr_guess"}).status_code == 401


def test_a_token_does_what_its_scopes_say_until_it_is_revoked(site: Site) -> None:
    reads = {"Authorization": f"Bearer {create_token(site.database, 'reads', ['read'], by='test')}"}
    scrapes = {"Authorization": f"Bearer {create_token(site.database, 'scrapes', ['metrics'], by='test')}"}
    browser = site.browser()
    assert browser.get("/api/v1/tasks", headers=reads).json()["total"] == 300
    assert browser.get("/export/tasks.csv", headers=reads).status_code == 200
    assert browser.get("/metrics", headers=reads).status_code == 401
    assert browser.get("/api/v1/tasks", headers=scrapes).status_code == 401
    assert "acrouter_tasks{" in browser.get("/metrics", headers=scrapes).text
    assert "acrouter_endpoint_passed_over" in browser.get("/metrics", headers=scrapes).text
    assert browser.get("/overview", headers=reads).status_code in (303, 401), "a token is no session"
    assert browser.post("/budgets/caps/day", headers=reads, data={"usd": "9"}).status_code in (303, 401)
    revoke_token(site.database, "reads", by="test")
    assert browser.get("/api/v1/tasks", headers=reads).status_code == 401


def test_a_token_dies_on_its_day(site: Site) -> None:
    reads = {"Authorization": f"Bearer {create_token(site.database, 'a day', ['read'], by='test', days=1)}"}
    assert site.browser().get("/api/v1/queue", headers=reads).status_code == 200
    with site.database.session() as session:
        token = session.exec(select(ApiToken).where(ApiToken.name == "a day")).one()
        token.expires_at = utc_now()
        session.add(token)
    assert site.browser().get("/api/v1/queue", headers=reads).status_code == 401


def test_people_see_only_tasks_of_repositories_that_they_can_read(site: Site, ada: Person) -> None:
    browser = site.as_person(ada)
    with site.database.reading() as session:
        tasks = {task.id: task.repository_id for task in session.exec(select(Task)).all()}
    mine = {key for key, repository in tasks.items() if repository in REPOSITORIES}
    hidden = next(key for key in tasks if key not in mine)
    assert browser.get("/api/v1/tasks", params={"limit": 200}).json()["total"] == len(mine)
    assert {int(row["id"]) for row in csv.DictReader(io.StringIO(browser.get("/export/tasks.csv").text))} == mine
    for name in ("attempts", "ledger", "history", "outcomes", "decisions"):
        rows = csv.DictReader(io.StringIO(browser.get(f"/export/{name}.csv").text))
        assert set() < {int(row["task_id"]) for row in rows} <= mine, name
    for path in (
        f"/tasks/{hidden}",
        f"/tasks/{hidden}/attempts/1/steps",
        f"/tasks/{hidden}/attempts/1/patch",
        f"/tasks/{hidden}/live",
        f"/api/v1/tasks/{hidden}",
    ):
        assert browser.get(path).status_code == 404, path
    assert (
        browser.get("/api/v1/tasks/999999").json()["detail"] == browser.get(f"/api/v1/tasks/{hidden}").json()["detail"]
    )
    for path in ("/overview", "/tasks", "/budgets", "/queue", "/models"):
        assert not re.search(r"octo/(site|api|docs)", browser.get(path).text), path


def test_similar_tasks_of_repositories_that_somebody_cannot_read_stay_hidden(site: Site, ada: Person) -> None:
    near = {"key": "attempt:1", "similarity": 0.9, "model": "small", "score": 1.0, "cost_usd": 0.1, "final": True}
    with site.database.session() as session:
        rows = session.exec(select(Repository)).all()
        theirs = next(row.full_name for row in rows if row.id not in REPOSITORIES)
        mine = session.exec(select(Task).where(Task.repository_id == REPOSITORIES[0])).first()
        assert mine is not None
        for decision in session.exec(select(Decision).where(Decision.task_id == mine.id)).all():
            decision.neighbours = [near | {"title": "A title of theirs", "link": "", "repository": theirs}]
            session.add(decision)
        path = f"/tasks/{mine.id}"
    for page in (path, f"/api/v1{path}"):
        assert "A title of theirs" not in site.as_person(ada).get(page).text
        assert "A title of theirs" in site.as_local_admin().get(page).text


def test_who_may_not_act_sees_no_failed_webhooks_of_others(site: Site, ada: Person, linus: Person) -> None:
    with site.database.session() as session:
        session.add(Delivery(guid="octo-secret", event="push", payload=b"{}", state=DeliveryState.FAILED))
    assert "octo-secret" not in site.as_person(ada).get("/queue").text
    assert site.as_person(ada).get("/api/v1/queue").json()["failed_deliveries"] == 0
    assert "octo-secret" in site.as_person(linus).get("/queue").text, "an operator can try them again"


def test_an_empty_list_of_repositories_shows_nothing(site: Site, ada: Person) -> None:
    ada.repositories = []
    browser = site.as_person(ada)
    assert browser.get("/api/v1/tasks").json()["total"] == 0
    assert "No task yet" in browser.get("/overview").text


def test_rights_that_are_gone_on_github_are_gone_here(site: Site, ada: Person) -> None:
    browser = site.as_person(ada)
    before = browser.get("/api/v1/tasks").json()["total"]
    ada.repositories = [100]
    assert browser.get("/api/v1/tasks").json()["total"] == before, "asked again after a quarter of an hour"
    _age_sessions(site, minutes=16)
    assert 0 < browser.get("/api/v1/tasks").json()["total"] < before

    site.people.down = True
    _age_sessions(site, minutes=16)
    assert browser.get("/overview").status_code == 200, "while GitHub is silent, the last answer holds"
    _age_sessions(site, minutes=90)
    assert browser.get("/overview").status_code == 303, "but not for long"
    site.people.down = False

    browser = site.as_person(ada)
    ada.organisations = {}
    _age_sessions(site, minutes=16)
    assert browser.get("/overview").status_code == 303


def test_who_is_an_operator_no_more_can_retry_nothing(site: Site, linus: Person) -> None:
    browser = site.as_person(linus)
    csrf = csrf_of(browser.get("/queue").text)
    linus.teams = {}
    _age_sessions(site, minutes=16)
    assert browser.post("/queue/deliveries/1/retry", data={"csrf": csrf}).status_code == 403


def test_a_session_ends_on_the_server_too(site: Site, ada: Person) -> None:
    browser = site.as_person(ada)
    with site.database.session() as session:
        for row in session.exec(select(DashboardSession)).all():
            row.expires_at = utc_now()
            session.add(row)
    assert browser.get("/overview").status_code == 303


def test_a_retried_task_has_all_its_tries_again_unless_its_target_is_worked_on(site: Site, linus: Person) -> None:
    with site.database.session() as session:
        failed, other = (
            Task(
                repository_id=100,
                kind=TaskKind.ISSUE,
                trigger=Trigger.LABEL,
                target="100/issues/9001",
                target_number=9001,
                budget_usd=1.0,
                state=state,
                tries=5,
            )
            for state in (TaskState.FAILED, TaskState.QUEUED)
        )
        session.add_all([failed, other])
        session.flush()
        ids = (failed.id, other.id)
    browser = site.as_person(linus)
    csrf = csrf_of(browser.get("/queue").text)
    busy = browser.post(f"/queue/tasks/{ids[0]}/retry", data={"csrf": csrf})
    assert busy.headers["location"].endswith("said=gone")
    with site.database.session() as session:
        session.add(session.get_one(Task, ids[1]).sqlmodel_update({"state": TaskState.NO_FIX}))
    free = browser.post(f"/queue/tasks/{ids[0]}/retry", data={"csrf": csrf})
    assert free.headers["location"].endswith("said=task")
    with site.database.session() as session:
        assert session.get_one(Task, ids[0]).tries == 0


def test_a_viewer_can_change_nothing(site: Site, ada: Person) -> None:
    browser = site.as_person(ada)
    page = browser.get("/budgets").text
    assert "New cap" not in page
    assert "Audit log" not in page
    csrf = csrf_of(page)
    assert browser.post("/budgets/caps/day", data={"csrf": csrf, "usd": "9999"}).status_code == 403
    assert browser.post("/queue/tasks/1/retry", data={"csrf": csrf}).status_code == 403
    assert browser.post("/queue/deliveries/1/retry", data={"csrf": csrf}).status_code == 403
    assert browser.get("/export/audit.csv").status_code == 403


def test_an_operator_retries_what_failed_and_changes_no_cap(site: Site, linus: Person) -> None:
    with site.database.session() as session:
        task = session.exec(select(Task).where(Task.repository_id == 100)).first()
        other = session.exec(select(Task).where(Task.repository_id == 101)).first()
        assert task is not None
        assert other is not None
        task.state = other.state = TaskState.FAILED
        task.updated_at = other.updated_at = utc_now()
        delivery = Delivery(guid="lost-1", event="issues", payload=b"{}", state=DeliveryState.FAILED, reason="A bug.")
        session.add_all([task, other, delivery])
        session.flush()
        ids = (task.id, other.id, delivery.id)
    browser = site.as_person(linus)
    page = browser.get("/queue").text
    assert f"/queue/tasks/{ids[0]}/retry" in page
    csrf = csrf_of(page)
    assert browser.post(f"/queue/tasks/{ids[0]}/retry", data={"csrf": csrf}).headers["location"].endswith("said=task")
    assert browser.post(f"/queue/tasks/{ids[1]}/retry", data={"csrf": csrf}).headers["location"].endswith("said=gone")
    assert browser.post(f"/queue/deliveries/{ids[2]}/retry", data={"csrf": csrf}).status_code == 303
    assert site.queue.tasks[-1] == ids[0]
    assert site.queue.deliveries[-1] == ids[2]
    again = browser.post(f"/queue/tasks/{ids[0]}/retry", data={"csrf": csrf})
    assert again.headers["location"].endswith("said=gone"), "twice is once"
    with site.database.session() as session:
        assert session.get_one(Task, ids[0]).state is TaskState.QUEUED
        assert session.get_one(Task, ids[1]).state is TaskState.FAILED, "he cannot read that repository"
        assert session.get_one(Delivery, ids[2]).state is DeliveryState.RECEIVED
        for one in ids[:2]:
            session.get_one(Task, one).state = TaskState.NO_FIX
    assert browser.post("/budgets/caps/day", data={"csrf": csrf, "usd": "9999"}).status_code == 403


def test_an_admin_changes_a_cap_and_the_log_says_so(site: Site, grace: Person) -> None:
    browser = site.as_person(grace)
    csrf = csrf_of(browser.get("/budgets").text)
    assert browser.post("/budgets/caps/day", data={"csrf": csrf, "usd": "12.50"}).status_code == 303
    page = browser.get("/budgets").text
    assert "of $12.50" in page
    assert "set by grace; the setting says $50.00" in page
    with site.database.reading() as session:
        entry = session.exec(select(AuditEntry).where(AuditEntry.action == "cap changed")).one()
    assert (entry.actor, entry.target, entry.data) == ("grace", "day", {"before_usd": 50.0, "after_usd": 12.5})
    for wrong in ("-1", "0", "nan", "1e12", "much"):
        answer = browser.post("/budgets/caps/day", data={"csrf": csrf, "usd": wrong})
        assert answer.status_code == 400, wrong
    assert browser.post("/budgets/caps/dya", data={"csrf": csrf, "usd": "1"}).status_code == 400
    assert browser.post("/budgets/caps/day", data={"csrf": csrf, "back": "setting"}).status_code == 303
    with site.database.reading() as session:
        assert session.get(CapOverride, "day") is None, "back to the setting"


def test_a_form_of_another_site_changes_nothing(site: Site, grace: Person, ada: Person) -> None:
    browser = site.as_person(grace)
    csrf = csrf_of(browser.get("/budgets").text)
    others = csrf_of(site.as_person(ada).get("/budgets").text)
    for form, headers in (
        ({"usd": "9"}, {}),
        ({"usd": "9", "csrf": others}, {}),
        ({"usd": "9", "csrf": csrf}, {"origin": "https://evil.example"}),
    ):
        assert browser.post("/budgets/caps/day", data=form, headers=headers).status_code == 403
    with site.database.reading() as session:
        assert session.get(CapOverride, "day") is None


def test_a_forged_cookie_opens_nothing(site: Site, ada: Person) -> None:
    browser = site.as_person(ada)
    cookie = browser.cookies["acrouter_session"]
    for forged in ("", "x", cookie[:-2] + "xx", cookie.split(".")[0]):
        stranger = site.browser()
        stranger.cookies.set("acrouter_session", forged)
        assert stranger.get("/overview").status_code == 303


def test_every_answer_forbids_what_a_page_does_not_need(site: Site) -> None:
    browser = site.as_local_admin()
    for path in (*PAGES, "/sign-in", "/static/dashboard.js", "/tasks/999999", "/healthz", "/api/v1/overview"):
        headers = browser.get(path).headers
        assert "default-src 'none'" in headers["content-security-policy"], path
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        if not path.startswith("/static/"):
            assert headers["cache-control"] == "no-store", path


def test_no_page_carries_a_script_or_a_style_of_its_own(site: Site) -> None:
    browser = site.as_local_admin()
    for path in PAGES:
        html = browser.get(path).text
        assert all(" src=" in tag for tag in re.findall(r"<script[^>]*>", html)), path
        assert not re.search(r"<style|\sstyle=|\son[a-z]+=|javascript:", html), path
        links = re.findall(r"(?:src|href)=\"(https?://[^\"]+)\"", html)
        assert all(link.startswith(site.people.url) for link in links), "links to GitHub alone"


def _age_sessions(site: Site, *, minutes: int) -> None:
    with site.database.session() as session:
        for row in session.exec(select(DashboardSession)).all():
            row.checked_at = utc_now() - timedelta(minutes=minutes)
            session.add(row)
