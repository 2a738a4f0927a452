"""Webhook bodies become typed events."""

import json
from typing import Any

import pytest

from bot.errors import PayloadError
from bot.events import (
    CheckSuiteRerequested,
    CommentCreated,
    Event,
    Ignored,
    IssueLabeled,
    PullRequestRetargeted,
    Pushed,
    parse,
)
from tests.support import npm

pytestmark = pytest.mark.node


def examples() -> list[tuple[str, dict[str, Any]]]:
    listed = json.loads(npm.webhook_examples().read_text(encoding="utf-8"))
    return [(entry["name"], example) for entry in listed for example in entry["examples"]]


def example(event: str, action: str) -> dict[str, Any]:
    found = next(body for name, body in examples() if name == event and body.get("action") == action)
    copied: dict[str, Any] = json.loads(json.dumps(found))
    return copied


def test_every_published_payload_is_an_event_or_ignored_with_a_reason() -> None:
    parsed: list[Event] = [parse(name, body) for name, body in examples()]
    assert len(parsed) == 329
    assert all(event.reason for event in parsed if isinstance(event, Ignored))
    assert {type(event).__name__ for event in parsed} >= {
        "IssueLabeled",
        "CommentCreated",
        "PullRequestClosed",
        "PullRequestSynchronized",
        "ReviewSubmitted",
        "CheckSuiteCompleted",
        "WorkflowRunCompleted",
        "WorkflowJobCompleted",
        "CheckRunRerequested",
        "Pushed",
        "InstallationChanged",
        "RepositoriesChanged",
        "Ping",
    }


def test_a_press_of_the_rerun_button_is_told_apart_from_the_next_by_the_suite_that_it_resets() -> None:
    body = example("check_run", "rerequested")
    first = parse("check_run", body)
    assert parse("check_run", json.loads(json.dumps(body))) == first
    body["check_run"]["check_suite"]["updated_at"] = "2018-05-04T02:00:00Z"
    assert parse("check_run", body) != first


def test_a_missing_field_is_named() -> None:
    body = example("issues", "labeled")
    del body["issue"]["title"]
    with pytest.raises(PayloadError, match=r"issues: issue\.title: is missing"):
        parse("issues", body)


@pytest.mark.parametrize("wrong", [[], "7", None, True, -1, 2**70])
def test_a_field_of_another_kind_is_named(wrong: object) -> None:
    body = example("issues", "labeled")
    body["issue"]["number"] = wrong
    with pytest.raises(PayloadError, match=r"issue\.number"):
        parse("issues", body)


def test_an_edited_comment_is_ignored() -> None:
    body = example("issue_comment", "created") | {"action": "edited"}
    assert isinstance(parse("issue_comment", body), Ignored)


def test_a_comment_on_a_pr_is_told_from_one_on_an_issue() -> None:
    body = example("issue_comment", "created")
    body["issue"].pop("pull_request", None)
    event = parse("issue_comment", body)
    assert isinstance(event, CommentCreated)
    assert not event.is_pull_request
    body["issue"]["pull_request"] = {"url": "https://api.github.com/repos/o/r/pulls/1"}
    event = parse("issue_comment", body)
    assert isinstance(event, CommentCreated)
    assert event.is_pull_request


def test_a_bot_is_known_by_its_type_or_its_name() -> None:
    body = example("issues", "labeled")
    body["sender"] |= {"login": "renovate[bot]", "type": "User"}
    event = parse("issues", body)
    assert isinstance(event, IssueLabeled)
    assert event.sender.is_bot


def test_texts_that_no_database_keeps_are_mended() -> None:
    body = example("issues", "labeled")
    body["issue"]["title"] = "nul \x00 and half a pair \ud83d"
    event = parse("issues", body)
    assert isinstance(event, IssueLabeled)
    assert event.title == "nul  and half a pair ?"


def test_a_push_of_a_tag_or_a_deleted_branch_is_ignored() -> None:
    body = next(body for name, body in examples() if name == "push" and body["ref"].startswith("refs/heads/"))
    assert isinstance(parse("push", body), Pushed)
    assert isinstance(parse("push", body | {"ref": "refs/tags/v1"}), Ignored)
    assert isinstance(parse("push", body | {"deleted": True}), Ignored)


def test_a_pr_that_goes_to_another_base_is_told_from_an_edited_text() -> None:
    body = example("pull_request", "closed") | {"action": "edited"}
    body["changes"] = {"title": {"from": "Old"}}
    assert isinstance(parse("pull_request", body), Ignored)
    body["changes"] = {"base": {"ref": {"from": "old"}, "sha": {"from": "1" * 40}}}
    event = parse("pull_request", body)
    assert isinstance(event, PullRequestRetargeted)
    assert event.base_ref == body["pull_request"]["base"]["ref"]


def test_a_push_tells_which_paths_it_touches() -> None:
    body = next(body for name, body in examples() if name == "push" and body["ref"].startswith("refs/heads/"))
    body = json.loads(json.dumps(body))
    commit = {"id": "1" * 40, "message": "x", "added": ["a"], "modified": [".acrouter.yml"], "removed": ["b"]}
    body["commits"] = [commit, {"id": "2" * 40}]
    event = parse("push", body)
    assert isinstance(event, Pushed)
    assert event.commits[0].paths == {"a", ".acrouter.yml", "b"}
    assert event.commits[1].paths == frozenset()


def test_a_press_of_the_button_of_all_checks_names_its_suite() -> None:
    event = parse("check_suite", example("check_suite", "rerequested"))
    assert isinstance(event, CheckSuiteRerequested)
    assert (event.suite_id, event.head_sha[:7], event.at) == (118578147, "ec26c3e", "2019-05-15T15:21:14Z")
