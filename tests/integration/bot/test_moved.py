"""GitHub answers with another address: the repository has a new name, or the issue is in another repository."""

import pytest

from bot.github import GitHubForge
from tests.support.github.faults import Answer
from tests.support.github.server import GitHubServer
from workers.errors import ForgeTemporary, TargetGone
from workers.ports import RepositoryRef

pytestmark = pytest.mark.node


def moved_to(shop: GitHubServer, status: int, path: str) -> Answer:
    address = f"{shop.base_url}{path}"
    return Answer(status, {"message": "Moved Permanently", "url": address}, {"Location": address})


def test_a_write_that_is_sent_elsewhere_is_made_again_with_a_token_that_tells_the_present_name(
    shop: GitHubServer, forge: GitHubForge, repository: RepositoryRef
) -> None:
    number = shop.open_issue("Bug")
    shop.on("POST", "/comments$", moved_to(shop, 307, f"/repositories/{repository.id}/issues/{number}/comments"))
    with pytest.raises(ForgeTemporary, match="present name"):
        forge.reply(repository, number, "<!-- marker -->", "Done.")
    assert shop.count("POST", ".*/access_tokens") == 1
    forge.reply(repository, number, "<!-- marker -->", "Done.")
    assert shop.count("POST", ".*/access_tokens") == 2
    assert len(shop.comments(number)) == 1


def test_a_read_that_is_sent_elsewhere_is_not_made_without_its_query(
    shop: GitHubServer, forge: GitHubForge, repository: RepositoryRef
) -> None:
    shop.on("GET", "/pulls$", moved_to(shop, 301, f"/repositories/{repository.id}/pulls?state=open"))
    with pytest.raises(ForgeTemporary, match="present name"):
        forge.find_pull_request(repository, "feature")
    assert shop.count("GET", "/repositories/.*") == 0


@pytest.mark.parametrize("tail", ["/issues/3", ""])
def test_an_issue_that_was_transferred_is_gone(
    shop: GitHubServer, forge: GitHubForge, repository: RepositoryRef, tail: str
) -> None:
    number = shop.open_issue("Bug")
    shop.on("GET", "/issues/", moved_to(shop, 301, f"/repositories/{repository.id + 1}{tail}"))
    with pytest.raises(TargetGone, match="moved to another repository"):
        forge.issue(repository, number)
