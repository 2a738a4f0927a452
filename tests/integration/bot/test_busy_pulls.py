"""A PR on which much was said and much was checked: the newest word, and the check that fails, are told."""

import pytest

from bot.github import GitHubForge
from store.types import utc_now
from tests.support.github.server import GitHubServer
from workers.ports import RepositoryRef

pytestmark = pytest.mark.node


@pytest.fixture
def pull(shop: GitHubServer) -> tuple[int, str]:
    """Its number and its head."""
    sha = shop.push("feature", {"cart.py": "def total(prices):\n    return 0\n"})
    return shop.open_pull_request("Speed up", head="feature"), sha


def test_the_newest_reviews_are_told(
    shop: GitHubServer, forge: GitHubForge, repository: RepositoryRef, pull: tuple[int, str]
) -> None:
    number, sha = pull
    for one in range(51):  # each reply to a remark on a line is a review, too
        shop.review(number, "COMMENTED", body=f"Remark {one}.")
    shop.review(number, "CHANGES_REQUESTED", body="This returns 0.")
    text = forge.pull_request_discussion(repository, number, sha=sha, asked_at=utc_now())
    assert "This returns 0." in text
    assert "Remark 1." not in text


def test_a_failing_check_is_told_however_many_pass(
    shop: GitHubServer, forge: GitHubForge, repository: RepositoryRef, pull: tuple[int, str]
) -> None:
    number, sha = pull
    passed = {"head_sha": sha, "status": "completed", "conclusion": "success"}
    shop._do("POST", "/check-runs", {**passed, "name": "unit tests", "conclusion": "failure"}, "acme", "")
    for one in range(100):
        shop._do("POST", "/check-runs", {**passed, "name": f"matrix {one}"}, "acme", "")
    shop._do("POST", "/check-runs", {**passed, "name": "types", "conclusion": "failure"}, "acme", "")
    text = forge.pull_request_discussion(repository, number, sha=sha, asked_at=utc_now())
    assert "unit tests (failure)" in text
    assert "types (failure)" in text
