"""Who gets in: by GitHub or by a one-time link, from here alone, and out again."""

import httpx
import pytest
from sqlmodel import select

from bot.dashboard.tokens import create_token, make_link_word
from store.tables import ApiToken, DashboardSession
from store.types import utc_now
from tests.support.dashboard_site import PAGES, Site, csrf_of, sign_in
from tests.support.people import Person


@pytest.mark.parametrize("path", [*PAGES, "/tasks/1/live", "/tasks/1/attempts/1/patch", "/export/ledger.csv"])
def test_a_stranger_is_asked_to_sign_in(site: Site, path: str) -> None:
    answer = site.browser().get(path)
    assert answer.status_code == 303
    assert answer.headers["location"].startswith("/sign-in?next=%2F")


def test_a_one_time_link_dies_after_half_an_hour(site: Site) -> None:
    word = make_link_word(site.database)
    with site.database.session() as session:
        for link in session.exec(select(ApiToken).where(ApiToken.name == "link")).all():
            link.expires_at = utc_now()
            session.add(link)
    assert site.browser().post("/sign-in/link", data={"word": word}).status_code == 403


def test_a_token_for_machines_signs_nobody_in(site: Site) -> None:
    token = create_token(site.database, "a machine", ["read"], by="test", days=1)
    assert site.browser().post("/sign-in/link", data={"word": token}).status_code == 403


def test_a_one_time_link_works_once_and_only_by_a_button(site: Site) -> None:
    word = make_link_word(site.database)
    browser = site.browser()
    for _ in range(2):  # what fetches a link ahead does not use it up
        assert browser.get(f"/sign-in/link/{word}").status_code == 200
    other = browser.post("/sign-in/link", data={"word": word}, headers={"origin": "https://evil.example"})
    assert other.status_code == 403
    assert browser.post("/sign-in/link", data={"word": word}).headers["location"] == "/overview"
    assert browser.get("/overview").status_code == 200
    again = site.browser().post("/sign-in/link", data={"word": word})
    assert again.status_code == 403
    assert "was used or is too old" in again.text
    assert "a demo must start again" in again.text


def test_a_member_signs_in_with_github_and_out(site: Site, ada: Person) -> None:
    browser = site.as_person(ada)
    page = browser.get("/overview")
    assert "Ada · viewer" in page.text
    cookie = browser.cookies["acrouter_session"]
    assert browser.post("/sign-out", data={"csrf": csrf_of(page.text)}).headers["location"] == "/sign-in"
    browser.cookies.set("acrouter_session", cookie)
    assert browser.get("/overview").status_code == 303, "the old cookie opens nothing any more"


def test_the_sessions_cookie_is_out_of_scripts_reach(site: Site, ada: Person) -> None:
    browser = site.browser()
    site.people.me = ada
    cookie = sign_in(browser, site.people).headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=lax" in cookie
    with site.database.reading() as session:
        words = [row.sealed_token + row.id for row in session.exec(select(DashboardSession)).all()]
    assert not any("ghu_" in word for word in words), "GitHub's token lies there encrypted"
    assert browser.cookies["acrouter_session"].split(".")[0] not in "".join(words)


@pytest.mark.parametrize(
    ("person", "why"),
    [
        (Person("mallory"), "not among those"),
        (Person("eve", {"octo": "pending"}), "not among those"),
        (Person("eve", {}, {("octo", "on-call"): "pending"}), "not among those"),
    ],
    ids=["stranger", "invited only", "invited to a team only"],
)
def test_who_is_no_member_may_not_look(site: Site, person: Person, why: str) -> None:
    browser = site.browser()
    site.people.me = person
    answer = sign_in(browser, site.people)
    assert answer.status_code == 403
    assert why in answer.text
    assert browser.get("/overview").status_code == 303


def test_a_sign_in_that_was_not_begun_here_is_refused(site: Site, ada: Person) -> None:
    site.people.me = ada
    victim, attacker = site.browser(), site.browser()
    there = attacker.get("/sign-in/github").headers["location"]
    back = httpx.get(there, follow_redirects=False).headers["location"]
    assert victim.get(back).status_code == 403, "the attacker's code in the victim's browser"
    victim.get("/sign-in/github")
    refused = victim.get(back)
    assert refused.status_code == 403, "nor with a flow of the victim's own"
    assert "This sign-in was not begun here" in refused.text, "GitHub is not even asked"


def test_where_github_sends_people_back_to_is_not_for_a_host_header_to_say(site: Site) -> None:
    answer = site.browser().get("/sign-in/github", headers={"host": "evil.example"})
    assert answer.status_code == 403
    assert "ACROUTER_PUBLIC_URL" in answer.text


@pytest.mark.parametrize("path", ["//evil.example", "https://evil.example", "/\\evil.example", "javascript:alert(1)"])
def test_a_sign_in_leads_nowhere_else(site: Site, ada: Person, path: str) -> None:
    site.people.me = ada
    browser = site.browser()
    there = browser.get("/sign-in/github", params={"next": path}).headers["location"]
    back = httpx.get(there, follow_redirects=False).headers["location"]
    assert browser.get(back).headers["location"] == "/overview"
