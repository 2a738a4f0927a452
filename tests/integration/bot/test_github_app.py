"""`acrouter github-app`: the manifest flow against a GitHub that answers as GitHub describes, and the check."""

import json
import re
import stat
import threading
from collections.abc import Iterator
from html import unescape
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest
from pydantic import SecretStr

from bot.github_app import credentials, flow
from bot.github_app.checking import check_app
from bot.github_app.errors import GitHubAppError
from bot.github_app.needs import EVENTS, PERMISSIONS, manifest
from bot.github_app.place import Place
from tests.support.github.server import new_private_key
from tests.support.rows import settings

PUBLIC = "https://acrouter.example.com"
KEY = new_private_key()


class FakeGitHub:
    """What the flow and the check ask of GitHub, with answers that a test sets."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, str, Any]] = []
        self.answers: dict[str, tuple[int, Any]] = {
            "/app-manifests/c0de/conversions": (
                201,
                {
                    "id": 5,
                    "slug": "acrouter",
                    "html_url": "https://github.example/apps/acrouter",
                    "pem": KEY,
                    "webhook_secret": "made by GitHub",
                    "client_secret": "a client's",
                },
            ),
            "/app/hook/config": (200, {"url": f"{PUBLIC}/webhooks/github", "content_type": "json"}),
            "/app": (200, {"slug": "acrouter", "permissions": dict(PERMISSIONS), "events": list(EVENTS)}),
            "/app/installations": (200, [{"id": 1, "account": {"login": "octo"}, "permissions": dict(PERMISSIONS)}]),
        }

    def answer(self, method: str, path: str, token: str, body: Any) -> tuple[int, Any]:
        path = path.partition("?")[0]
        self.asked.append((method, path, token, body))
        return self.answers.get(path, (404, {"message": "Not Found"}))


@pytest.fixture
def github() -> Iterator[tuple[FakeGitHub, str]]:
    fake = FakeGitHub()

    class Handler(BaseHTTPRequestHandler):
        def handle_any(self) -> None:
            content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            token = (self.headers.get("Authorization") or "").partition(" ")[2]
            status, answer = fake.answer(self.command, self.path, token, json.loads(content) if content else None)
            body = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_PATCH = handle_any  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            del format, args

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield fake, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_the_browser_is_sent_to_github_with_the_exact_permissions_and_events_and_comes_back_with_a_code() -> None:
    codes: list[str] = []
    with flow.started("My router", "octo org", Place.of("https://github.example"), PUBLIC, 0) as begun:
        waiting = threading.Thread(target=lambda: codes.append(begun.wait()))
        waiting.start()
        page = httpx.get(begun.url).text
        [action] = re.findall(r'action="([^"]+)"', page)
        [value] = re.findall(r'name="manifest" value="([^"]+)"', page)
        sent = json.loads(unescape(value))
        assert unescape(action) == (
            f"https://github.example/organizations/octo%20org/settings/apps/new?state={begun.state}"
        )
        assert (sent["default_permissions"], sent["default_events"]) == (PERMISSIONS, list(EVENTS))
        assert sent["hook_attributes"]["url"] == f"{PUBLIC}/webhooks/github"
        assert sent["public"] is False
        assert httpx.get(f"{begun.url}created?code=c0de&state=another").status_code == 400
        assert httpx.get(f"{begun.url}created?code=c0de&state=%C3%A9").status_code == 400
        assert httpx.get(f"{begun.url}created?code=../x&state={begun.state}").status_code == 400
        assert codes == []
        assert httpx.get(f"{begun.url}created?code=c0de&state={begun.state}").status_code == 200
        waiting.join(10)
    assert codes == ["c0de"]


def test_a_name_cannot_break_out_of_the_page() -> None:
    with flow.started('"><script>x</script>', "", Place.of("https://github.com"), PUBLIC, 0) as begun:
        page = begun.begin_page()
    assert "<script>" not in page


def test_credentials_are_kept_for_this_user_alone_and_the_webhooks_secret_is_made_here(
    github: tuple[FakeGitHub, str], tmp_path: Path
) -> None:
    fake, url = github
    place = Place.of("https://github.example", url)
    made = credentials.exchange(place, "c0de", PUBLIC)
    assert made.webhook_secret != "made by GitHub"
    assert KEY not in repr(made)
    method, path, token, body = fake.asked[-1]
    assert (method, path) == ("PATCH", "/app/hook/config")
    assert body["secret"] == made.webhook_secret
    assert body["content_type"] == "json"
    assert jwt.decode(token, options={"verify_signature": False})["iss"] == "5"
    lines = credentials.keep(made, tmp_path / "keys", place, PUBLIC)
    for name, text in (("PRIVATE_KEY", KEY.strip()), ("WEBHOOK_SECRET", made.webhook_secret)):
        file = Path(lines[f"ACROUTER_GITHUB_{name}_FILE"])
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert file.read_text().strip() == text
    assert lines["ACROUTER_GITHUB_APP_ID"] == "5"
    assert lines["ACROUTER_GITHUB_API_URL"] == url


def test_another_apps_key_is_never_written_over(github: tuple[FakeGitHub, str], tmp_path: Path) -> None:
    (tmp_path / "github-app.pem").write_text("another")
    with pytest.raises(GitHubAppError, match="there already"):
        credentials.require_room(tmp_path)
    made = credentials.exchange(Place.of("https://github.example", github[1]), "c0de", PUBLIC)
    with pytest.raises(GitHubAppError):
        credentials.keep(made, tmp_path, Place.of("https://github.com"), PUBLIC)
    assert (tmp_path / "github-app.pem").read_text() == "another"


def test_a_code_that_github_refuses_is_told(github: tuple[FakeGitHub, str]) -> None:
    with pytest.raises(GitHubAppError, match="HTTP 404"):
        credentials.exchange(Place.of("https://github.example", github[1]), "old", PUBLIC)


@pytest.mark.parametrize(
    ("web", "api"),
    [
        ("https://github.com/", "https://api.github.com"),
        ("https://github.example", "https://github.example/api/v3"),
        ("https://octo.ghe.com", "https://api.octo.ghe.com"),
    ],
)
def test_each_kind_of_github_has_its_api_elsewhere(web: str, api: str) -> None:
    assert Place.of(web).api_url == api


def test_an_address_that_is_none_is_refused() -> None:
    with pytest.raises(GitHubAppError, match="no address"):
        Place.of("github.com")


def levels(fake: FakeGitHub, url: str) -> dict[str, str]:
    found = check_app(
        settings(github_app_id=5, github_private_key=SecretStr(KEY), github_api_url=url, public_url=PUBLIC)
    )
    return {finding.what: f"{finding.level}: {finding.found}" for finding in found}


def test_the_check_is_content_with_what_create_makes(github: tuple[FakeGitHub, str]) -> None:
    fake, url = github
    made = manifest("acrouter", PUBLIC, "http://127.0.0.1:1/")
    fake.answers["/app"] = (
        200,
        {"slug": "a", "permissions": made["default_permissions"], "events": made["default_events"]},
    )
    assert all(found.startswith("ok") for found in levels(fake, url).values())


def test_the_check_names_what_is_missing(github: tuple[FakeGitHub, str]) -> None:
    fake, url = github
    fewer = dict(PERMISSIONS) | {"contents": "read"}
    del fewer["checks"]
    fake.answers["/app"] = (200, {"slug": "a", "permissions": fewer, "events": ["push"]})
    fake.answers["/app/hook/config"] = (200, {"url": "https://elsewhere.example/", "content_type": "json"})
    fake.answers["/app/installations"] = (200, [{"id": 1, "account": {"login": "octo"}, "permissions": fewer}])
    found = levels(fake, url)
    assert found["permissions"] == "wrong: missing: contents:write, checks:write"
    assert found["events"].startswith("wrong: not subscribed: issues")
    assert found["webhook"] == "wrong: https://elsewhere.example/"
    assert found["installation octo"] == "wrong: not granted: contents:write, checks:write"
