"""Caps of organisations, repositories and people: the page says of each what the ledger will honour."""

import re

import pytest
from sqlmodel import select

from bot.dashboard.caps import CapView, limited, reservations
from bot.dashboard.facts_store import read_facts
from bot.dashboard.rates import Rates
from bot.dashboard.roles import Role, Viewer
from sandbox.errors import BudgetExceeded
from store.database import Database
from store.settings import Settings
from store.tables import AuditEntry, ConfigurationFile, Installation, Repository
from tests.support.dashboard_site import Site, csrf_of
from tests.support.people import Person
from tests.support.rows import add_attempt, add_repository, add_task, settings
from workers import budgets
from workers.limits import operators_limits, set_limit

EVERYONE = Viewer("x", Role.ADMIN, None)


def test_each_cap_is_the_ledgers_with_what_counts_against_it(database: Database) -> None:
    limits = {"organisation_day": 100.0, "organisation_month": 80.0, "repository_day": 9.0, "person_day": 6.0}
    configured = settings(**{f"{name}_budget_usd": usd for name, usd in limits.items()})
    for number, name in ((42, "octo/tools"), (43, "octo/shop"), (44, "octo/.github")):
        add_repository(database, number, name)
    _configure(database, 42, "day_budget_usd: 4\nperson_day_budget_usd: 3\n")
    _configure(database, 44, "organisation: {day_budget_usd: 20}\nmonth_budget_usd: 30\n")
    for number, (repository, person) in enumerate(((42, "ada"), (42, "grace"), (43, "ada")), start=1):
        task = add_task(database, repository_id=repository, requested_by=person, target=f"{repository}/issues/{number}")
        attempt = add_attempt(database, task)
        paid = budgets.reserve(database, configured, task_id=task, attempt_id=attempt, model="small", usd=1.0)
        budgets.settle(database, paid, 0.1 * number)
        budgets.reserve(database, configured, task_id=task, attempt_id=attempt, model="small", usd=0.01 * number)

    shown = {(cap.scope, cap.whose, cap.name): cap for cap in _limited(database, configured)}
    assert {key: cap.limit_usd for key, cap in shown.items()} == {
        ("organisation", "octo", "day"): 20.0,
        ("organisation", "octo", "month"): 80.0,
        ("repository", "octo/.github", "day"): 9.0,
        ("repository", "octo/.github", "month"): 30.0,
        ("repository", "octo/shop", "day"): 9.0,
        ("repository", "octo/shop", "month"): 30.0,
        ("repository", "octo/tools", "day"): 4.0,
        ("repository", "octo/tools", "month"): 30.0,
        ("person", "ada", "day"): 6.0,
        ("person", "ada in octo/tools", "day"): 3.0,
        ("person", "grace", "day"): 6.0,
        ("person", "grace in octo/tools", "day"): 3.0,
    }
    assert shown["organisation", "octo", "day"].file_of == "octo/.github"
    assert shown["repository", "octo/tools", "day"].file_of == "octo/tools"
    assert shown["repository", "octo/shop", "day"].raised_by == (
        "An operator can raise ACROUTER_REPOSITORY_DAY_BUDGET_USD."
    )
    with database.reading() as session:
        for repository, person in ((42, "ada"), (42, "grace"), (43, "ada")):
            honoured = budgets.usage(session, configured, repository_id=repository, requested_by=person)
            for used in honoured[2:]:
                name = "octo/tools" if repository == 42 else "octo/shop"
                whose = {"This repository's": name, "octo's": "octo"}.get(used.cap.whose, person)
                if used.cap.file_of and whose == person:
                    whose = f"{person} in {name}"
                [view] = [one for key, one in shown.items() if key[1:] == (whose, used.cap.name)]
                assert view.used_usd == pytest.approx(used.spent_usd, abs=1e-9), whose
                assert view.raised_by == used.cap.raised_by


def test_what_an_organisation_spent_before_it_installed_the_app_again_is_shown_too(sqlite_database: Database) -> None:
    configured = settings(organisation_day_budget_usd=2.0)
    task = add_task(sqlite_database)
    attempt = add_attempt(sqlite_database, task)
    paid = budgets.reserve(sqlite_database, configured, task_id=task, attempt_id=attempt, model="small", usd=1.0)
    budgets.settle(sqlite_database, paid, 0.5)
    with sqlite_database.session() as session:
        session.get_one(Repository, 42).active = False
        session.add(Installation(id=8, account="octo"))
        session.flush()
        session.add(Repository(id=43, installation_id=8, full_name="octo/more"))
    [shown] = _limited(sqlite_database, configured)
    assert (shown.whose, shown.used_usd) == ("octo", 0.5)


def test_who_cannot_read_a_repository_hears_nothing_of_its_caps(sqlite_database: Database) -> None:
    configured = settings(repository_day_budget_usd=9.0)
    add_repository(sqlite_database, 42, "octo/tools")
    add_repository(sqlite_database, 43, "octo/secret")
    ada = Viewer("ada", Role.VIEWER, (42,))
    assert [cap.whose for cap in _limited(sqlite_database, configured, ada)] == ["octo/tools"]


def test_an_operators_limit_that_an_admin_sets_stops_the_next_call(database: Database) -> None:
    configured = settings()
    task = add_task(database, requested_by="ada")
    attempt = add_attempt(database, task)
    set_limit(database, configured, "person_day", 0.10, by="grace")
    with pytest.raises(BudgetExceeded, match=r"ada's budget of \$0\.10 a day is used up.*on the dashboard"):
        budgets.reserve(database, configured, task_id=task, attempt_id=attempt, model="small", usd=0.5)
    set_limit(database, configured, "person_day", None, by="grace")
    budgets.reserve(database, configured, task_id=task, attempt_id=attempt, model="small", usd=0.5)
    with database.reading() as session:
        entries = session.exec(select(AuditEntry).order_by(AuditEntry.id)).all()  # type: ignore[arg-type]
    assert [(one.action, one.data) for one in entries] == [
        ("cap changed", {"before_usd": None, "after_usd": 0.1}),
        ("cap back to its setting", {"before_usd": 0.1, "after_usd": None}),
    ]


def test_an_admin_sets_and_removes_a_limit_on_each_repository(site: Site, grace: Person) -> None:
    browser = site.as_person(grace)
    page = browser.get("/budgets").text
    assert "None is set" in page
    csrf = csrf_of(page)
    assert browser.post("/budgets/caps/repository_day", data={"csrf": csrf, "usd": "2.50"}).status_code == 303
    page = browser.get("/budgets").text
    assert len(re.findall(r"<th[^>]*>octo/\w+<span class=\"sub\">repository", page)) == 5
    assert "set by grace; the setting says none" in page
    assert browser.get("/api/v1/budgets").json()["limited"][0]["limit_usd"] == 2.5
    answer = browser.post("/budgets/caps/repository_day", data={"csrf": csrf, "back": "setting"})
    assert answer.status_code == 303
    assert "The cap is the setting&#39;s again." in browser.get(answer.headers["location"]).text
    assert "None is set" in browser.get("/budgets").text


@pytest.mark.parametrize("usd", ["", "much", "-1", "0", "nan", "inf", "1000000.01"])
def test_what_is_no_amount_changes_no_cap_and_leads_back_to_the_budgets(site: Site, grace: Person, usd: str) -> None:
    browser = site.as_person(grace)
    before = browser.get("/api/v1/budgets").json()
    answer = browser.post("/budgets/caps/day", data={"csrf": csrf_of(browser.get("/budgets").text), "usd": usd})
    assert answer.status_code == 400
    assert '<a href="/budgets">Back to Budgets</a>' in answer.text
    assert browser.get("/api/v1/budgets").json() == before


def test_who_cannot_read_an_accounts_repositories_hears_nothing_of_its_rate_limit(
    site: Site, ada: Person, linus: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = (Rates("another-guild", 3, 5000, 1_800_000_000.0), Rates("octo", 4321, 5000, 1_800_000_000.0))
    monkeypatch.setattr(site.app.state.board.rates, "_known", known)
    page = site.as_person(ada).get("/queue").text
    assert "4,321" in page
    assert "another-guild" not in page
    assert "another-guild" in site.as_person(linus).get("/queue").text, "an operator sees all of them"


def _configure(database: Database, repository_id: int, text: str) -> None:
    with database.session() as session:
        assert session.get(Repository, repository_id) is not None
        session.add(ConfigurationFile(repository_id=repository_id, text=text))


def _limited(database: Database, configured: Settings, viewer: Viewer = EVERYONE) -> list[CapView]:
    facts = read_facts(database)
    with database.reading() as session:
        return limited(session, facts, operators_limits(session, configured), viewer, reservations(session))
