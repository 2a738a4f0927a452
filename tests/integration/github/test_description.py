"""GitHub's own description, cut to what acrouter uses, tells right requests and answers from wrong ones."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.github.openapi import check_request, check_response
from tests.support.github.webhook_schema import webhook_problems

pytestmark = pytest.mark.node

REPO = "/repos/acme/widget"


@pytest.mark.parametrize(
    ("method", "path", "query", "body"),
    [
        ("GET", f"{REPO}/contents/a/deep/file.py", {"ref": "main"}, None),
        ("GET", f"{REPO}/branches/feature/with/slashes", {}, None),
        ("GET", f"{REPO}/commits/main/check-runs", {"check_name": "acrouter", "per_page": "100"}, None),
        ("POST", f"{REPO}/issues/1/labels", {}, ["acrouter"]),
        ("POST", f"{REPO}/issues/1/labels", {}, {"labels": ["acrouter"]}),
        ("POST", f"{REPO}/pulls", {}, {"title": "Fix", "head": "a", "base": "b", "draft": True}),
        ("PATCH", f"{REPO}/check-runs/1", {}, {"status": "completed", "conclusion": "success"}),
    ],
)
def test_right_requests_pass(method: str, path: str, query: dict[str, str], body: object) -> None:
    assert check_request(method, path, query, body) == []


@pytest.mark.parametrize(
    ("method", "path", "query", "body", "problem"),
    [
        ("GET", f"{REPO}/no/such/thing", {}, None, "not among the operations"),
        ("DELETE", f"{REPO}/pulls/1", {}, None, "not among the operations"),
        ("POST", f"{REPO}/issues/1/comments", {}, None, "the body is missing"),
        ("POST", f"{REPO}/issues/1/comments", {}, {"text": "hello"}, "'body' is a required property"),
        (
            "POST",
            f"{REPO}/issues/1/comments",
            {},
            {"body": "hello", "text": "x"},
            "text: the operation has no such field",
        ),
        ("POST", f"{REPO}/issues/1/comments", {}, {"body": None}, "not of type 'string'"),
        ("GET", f"{REPO}/pulls", {"status": "all"}, None, "has no query parameter 'status'"),
        ("GET", f"{REPO}/pulls", {"state": "merged"}, None, "'merged' is not one of"),
        ("POST", f"{REPO}/check-runs", {}, {"name": "a", "head_sha": "b", "conclusion": "fine"}, "conclusion"),
    ],
)
def test_wrong_requests_are_named(method: str, path: str, query: dict[str, str], body: object, problem: str) -> None:
    assert problem in "\n".join(map(str, check_request(method, path, query, body)))


def test_answers_are_held_to_their_schema() -> None:
    path = f"{REPO}/pulls/1/merge"
    merged = {"sha": "a" * 40, "merged": True, "message": "Pull Request successfully merged"}
    assert check_response("PUT", path, 200, merged) == []
    assert check_response("PUT", path, 200, {**merged, "merged": "yes"})
    assert check_response("PUT", path, 502, None) == []
    assert "answers 201" in str(check_response("PUT", path, 201, merged)[0])


def test_null_is_allowed_only_where_github_says_so() -> None:
    item = {
        "id": 1,
        "guid": "b",
        "delivered_at": "2026-01-01T00:00:00Z",
        "redelivery": False,
        "duration": 0.1,
        "status": "OK",
        "status_code": 200,
        "event": "push",
        "action": None,
        "installation_id": None,
        "repository_id": None,
    }
    assert check_response("GET", "/app/hook/deliveries", 200, [item]) == []
    assert check_response("GET", "/app/hook/deliveries", 200, [{**item, "guid": None}])
    assert check_response("GET", "/app/hook/deliveries", 200, [{**item, "delivered_at": "yesterday"}])


def test_webhooks_are_held_to_what_is_published() -> None:
    assert webhook_problems("no_such_event", {}) == ["there is no webhook no_such_event "]
    problems = webhook_problems("issues", {"action": "labeled"})
    assert any("'issue' is a required property" in problem for problem in problems)


def test_processes_that_need_the_packages_at_once_share_one_installation() -> None:
    root = Path(__file__).resolve().parents[3]
    command = [sys.executable, "-c", "from tests.support import npm; print(npm.node_modules())"]
    asking = [subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    answers = {process.communicate(timeout=100)[0] for process in asking}
    assert [process.returncode for process in asking] == [0, 0, 0]
    assert len(answers) == 1
    assert (Path(answers.pop().strip()) / "emulate" / "dist" / "index.js").is_file()
