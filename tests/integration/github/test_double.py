"""What only the tests' GitHub does: faults, forks, dead tokens, lost webhooks, and a watch over every request."""

import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.integration.github.conftest import Forge, commit_all, git
from tests.support.github.faults import (
    BAD_GATEWAY,
    SECONDARY_LIMIT,
    AfterWork,
    Hold,
    Reset,
)
from tests.support.github.listener import Listener, listening
from tests.support.github.server import WEBHOOK_SECRET, GitHubServer

pytestmark = pytest.mark.node


@pytest.fixture
def heard() -> Iterator[Listener]:
    with listening(WEBHOOK_SECRET) as listener:
        yield listener


@pytest.fixture
def server(tmp_path: Path, source: Path, heard: Listener) -> Iterator[GitHubServer]:
    with GitHubServer(tmp_path / "github", heard.url) as server:
        server.create_repository("acme/widget", source)
        yield server


@pytest.fixture
def api(server: GitHubServer, heard: Listener) -> Iterator[httpx.Client]:
    forge = Forge(server, server.settle, heard, server.private_key_pem, server.port)
    headers = {"Authorization": f"Bearer {forge.token()}"}
    with httpx.Client(base_url=f"{server.base_url}/repos/acme/widget", headers=headers, timeout=20) as client:
        yield client


def test_a_refused_request_does_nothing(server: GitHubServer, api: httpx.Client) -> None:
    number = server.open_issue("It breaks")
    fault = server.on("POST", r"/comments$", SECONDARY_LIMIT)
    refused = api.post(f"/issues/{number}/comments", json={"body": "Working."})
    assert (refused.status_code, refused.headers["retry-after"], fault.hits) == (403, "1", 1)
    assert server.comments(number) == []
    assert api.post(f"/issues/{number}/comments", json={"body": "Working."}).status_code == 201
    assert server.count("POST", r"/repos/acme/widget/issues/\d+/comments") == 2


@pytest.mark.parametrize("action", [AfterWork(BAD_GATEWAY), Reset(after_work=True)])
def test_an_answer_can_be_lost_after_the_work(
    server: GitHubServer, api: httpx.Client, action: AfterWork | Reset
) -> None:
    number = server.open_issue("It breaks")
    server.on("POST", r"/comments$", action)
    try:
        status = api.post(f"/issues/{number}/comments", json={"body": "Working."}).status_code
    except httpx.TransportError:
        status = 0
    assert status == (502 if isinstance(action, AfterWork) else 0)
    assert [comment["body"] for comment in server.comments(number)] == ["Working."]


def test_a_reset_connection_did_nothing(server: GitHubServer, api: httpx.Client) -> None:
    number = server.open_issue("It breaks")
    server.on("POST", r"/comments$", Reset())
    with pytest.raises(httpx.TransportError):
        api.post(f"/issues/{number}/comments", json={"body": "Working."})
    assert server.comments(number) == []
    assert server.requests[-1].status == 0


def test_a_request_waits_at_a_gate(server: GitHubServer, api: httpx.Client) -> None:
    number = server.open_issue("It breaks")
    gate = Hold()
    server.on("POST", r"/comments$", gate)
    asking = threading.Thread(target=api.post, args=(f"/issues/{number}/comments",), kwargs={"json": {"body": "Now."}})
    asking.start()
    assert gate.reached.wait(10)
    assert server.comments(number) == []
    gate.gate.set()
    asking.join(10)
    assert [comment["body"] for comment in server.comments(number)] == ["Now."]


def test_what_github_does_not_describe_fails_the_test(server: GitHubServer, api: httpx.Client) -> None:
    number = server.open_issue("It breaks")
    api.post(f"/issues/{number}/comments", json={"text": "Working."})
    api.get("/no/such/thing")
    with pytest.raises(AssertionError, match="the operation has no such field") as found:
        server.assert_no_violations()
    assert "not among the operations" in str(found.value)
    server.forgive_violations()


def test_dead_tokens_neither_ask_nor_push(server: GitHubServer, api: httpx.Client, tmp_path: Path) -> None:
    token = server.tokens[-1]
    url = f"http://x-access-token:{token}@localhost:{server.port}/acme/widget.git"
    git(tmp_path, "clone", "--quiet", url, "work")
    server.expire_tokens()
    assert api.get("/issues").status_code == 401
    (tmp_path / "work" / "new.txt").write_text("new\n", encoding="utf-8")
    commit_all(tmp_path / "work", "Add a file")
    with pytest.raises(Exception, match="exit status 128"):
        git(tmp_path / "work", "push", "--quiet", "origin", "HEAD:refs/heads/new")


def test_a_fork_s_pull_request_and_its_checks(server: GitHubServer, api: httpx.Client, heard: Listener) -> None:
    fork = server.fork("contributor")
    sha = server.push("patch-1", {"size.txt": "2\n"}, by="contributor", repository=fork)
    number = server.open_pull_request("From afar", head="contributor:patch-1", by="contributor")
    pull = api.get(f"/pulls/{number}").json()
    assert (pull["head"]["sha"], pull["head"]["repo"]["full_name"]) == (sha, fork)
    assert [file["filename"] for file in api.get(f"/pulls/{number}/files").json()] == ["size.txt"]
    server.fail_ci(sha, None)
    server.settle()
    suite = heard.last("check_suite.completed").payload["check_suite"]
    assert (suite["head_branch"], suite["pull_requests"]) == (None, [])
    moved = server.push("patch-1", {"size.txt": "3\n"}, by="contributor", repository=fork)
    assert api.get(f"/pulls/{number}").json()["head"]["sha"] == moved
    server.merge(number)
    assert server.bare().file("trunk", "size.txt") == b"3\n"


def test_a_lost_webhook_stays_in_the_list(server: GitHubServer, heard: Listener) -> None:
    server.settle()
    server.lose_webhooks()
    server.open_issue("Unheard")
    server.settle()
    assert "issues.opened" not in heard.names()
    lost = server.deliveries[-1]
    assert (lost.event, lost.status_code) == ("issues", 0)
    server.redeliver(lost)
    server.settle()
    assert heard.last("issues.opened").guid == lost.guid


def test_a_conflicting_merge_changes_nothing(server: GitHubServer, api: httpx.Client) -> None:
    server.push("one", {"README.md": "# One\n"})
    number = server.open_pull_request("One", head="one")
    before = server.push("trunk", {"README.md": "# Two\n"})
    answer = api.put(f"/pulls/{number}/merge", json={})
    assert answer.status_code == 405
    assert server.branches()["trunk"] == before
    assert api.get(f"/pulls/{number}").json()["state"] == "open"
    assert api.put(f"/pulls/{number}/merge", json={"sha": before}).status_code == 409


def test_a_reaction_is_taken(server: GitHubServer, api: httpx.Client) -> None:
    comment = server.comment(server.open_issue("It breaks"), "/route fix")
    made = api.post(f"/issues/comments/{comment}/reactions", json={"content": "eyes"})
    assert (made.status_code, made.json()["content"]) == (201, "eyes")


def test_a_foreign_push_over_the_branch_and_its_end(server: GitHubServer, api: httpx.Client) -> None:
    first = server.push("work", {"a.txt": "1\n"})
    second = server.push("work", {"a.txt": "2\n"})
    server.move_branch("work", first)
    assert api.get("/branches/work").json()["commit"]["sha"] == first != second
    server.delete_branch("work")
    assert api.get("/branches/work").status_code == 404
