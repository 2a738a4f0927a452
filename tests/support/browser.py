"""A real Chromium, watched: what it complains of, whom it asks, and what axe-core finds."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from playwright.sync_api import Browser, BrowserContext, Page, ViewportSize, expect, sync_playwright

from tests.support.npm import CACHE, node_modules
from tests.support.services import find_program

SHOTS = CACHE / "screenshots"
"""Kept by each run, to be looked at."""
DESKTOP, PHONE = ViewportSize(width=1280, height=900), ViewportSize(width=390, height=844)
SMALL_PHONE = ViewportSize(width=360, height=740)
_VIOLATIONS = """axe.run({
    runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'],
    resultTypes: ['violations'],
}).then(({violations}) => violations)"""
"""What passes is looked at, too, but not described node by node, which takes most of the time."""


@contextmanager
def running_chromium() -> Iterator[Browser]:
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
    complaints: list[str] = field(default_factory=list)
    hosts: set[str] = field(default_factory=set)


@contextmanager
def watched(context: BrowserContext) -> Iterator[Watched]:
    """Open a page; at its end nothing was complained of, no dialog opened, and no other host was asked."""
    page = context.new_page()
    noted = Watched(page)
    page.on("console", lambda message: noted.complaints.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: noted.complaints.append(str(error)))
    page.on("dialog", lambda dialog: noted.complaints.append(f"a dialog: {dialog.message}"))
    page.on("request", lambda request: noted.hosts.add(request.url.split("/")[2].split(":")[0]))
    yield noted
    page.close()
    assert noted.complaints == []
    assert noted.hosts <= {"127.0.0.1"}, "no request to another host"


def sign_in_by_link(page: Page, url: str, word: str) -> None:
    """Use a one-time link, as the admin of this machine."""
    page.goto(f"{url}/sign-in/link/{word}")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Overview", level=1)).to_be_visible()


def look_at(page: Page, address: str, shot: str, *, rules: bool = True) -> None:
    """Open a page, hold it against the rules of accessibility, and keep its picture."""
    page.goto(address)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{address} is too wide"
    assert not rules or serious_findings(page) == [], address
    page.screenshot(path=SHOTS / f"{shot}.png", full_page=True)


def serious_findings(page: Page) -> list[str]:
    """Return what axe-core finds serious or worse."""
    page.evaluate((node_modules() / "axe-core" / "axe.min.js").read_text(encoding="utf-8"))
    violations = page.evaluate(_VIOLATIONS)
    return [
        f"{one['id']}: {one['help']}: {node['html'][:160]}"
        for one in violations
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"][:3]
    ]
