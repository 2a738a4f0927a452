"""The demo's pages: what a person sees at the printed addresses, and that nothing from outside acts there."""

import html
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from bot.demo.hub import NAME
from bot.demo.hub.server import LocalHub
from bot.errors import BotError
from tests.support.github.server import APP_ID, new_private_key
from tests.support.services import free_port

EVIL = "<script>alert(1)</script> [x](javascript:alert(1)) ![i](http://evil.example/i.png) <img src=x onerror=alert(1)>"


@pytest.fixture
def hub(source: Path) -> Iterator[LocalHub]:
    with LocalHub(free_port(), None, "secret", APP_ID, new_private_key()) as hub:
        hub.create_repository("acme/widget", source)
        yield hub


def test_the_pull_request_s_address_opens(hub: LocalHub) -> None:
    number = hub.open_issue("The size is wrong", "It is **one**.")
    hub.push("fix", {"widget/size.py": "SIZE = 2\n"})
    pull = hub.open_pull_request(
        "Double the size", head="fix", body=f"Fixes #{number}\n\n| a | b |\n|---|---|\n| 1 | 2 |"
    )
    hub.comment(pull, "Looks good.")
    address = hub.pull_requests()[0]["html_url"]
    page = httpx.get(address)
    assert page.status_code == 200
    for shown in ("Double the size", "<td>1</td>", "Looks good.", "-SIZE = 1", "+SIZE = 2", "This is not github.com"):
        assert shown in page.text
    assert "<strong>one</strong>" in httpx.get(f"{hub.base_url}/acme/widget/issues/{number}").text
    assert httpx.get(f"{address}.diff").text.startswith("diff --git a/widget/size.py b/widget/size.py")
    hub.merge(pull)
    assert '<span class="state">merged</span>' in httpx.get(address).text


def test_text_from_outside_does_nothing(hub: LocalHub) -> None:
    number = hub.open_issue(EVIL, EVIL)
    hub.comment(number, EVIL + " <!-- a marker that nobody needs to see -->")
    hub.label(number, "<b>bold</b>")
    hub.push("evil", {"<script>.txt": EVIL})
    pull = hub.open_pull_request(EVIL, head="evil", body=EVIL)
    for path in (f"issues/{number}", f"pull/{pull}", ""):
        page = httpx.get(f"{hub.base_url}/acme/widget/{path}".rstrip("/"))
        assert page.status_code == 200
        for harm in ("<script", "<img", "<b>", 'href="javascript', "a marker"):
            assert harm not in page.text
        assert page.headers["content-security-policy"].startswith("default-src 'none'")


def test_every_answer_says_whose_it_is(hub: LocalHub) -> None:
    for path in ("/", "/acme/widget", "/nothing/here", "/rate_limit", "/repos/acme/widget"):
        assert httpx.get(hub.base_url + path).headers["server"] == NAME
    assert NAME in html.unescape(httpx.get(hub.base_url).text)


def test_a_taken_port_is_a_clear_error(hub: LocalHub) -> None:
    second = LocalHub(hub.port, None, "secret", APP_ID, new_private_key())
    with pytest.raises(BotError, match="in use"):
        second.start()
    second.stop()
