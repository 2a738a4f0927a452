"""The calls that a run seldom makes, against the stateful GitHub: teams, reviewers, a second run, a proposed file."""

from dataclasses import replace

import httpx
import pytest

from bot.github import GitHubForge
from bot.github.client import Clients, Permissions, Token
from tests.support.github.faults import Answer
from tests.support.github.server import GitHubServer
from workers.errors import ForgeError
from workers.ports import CheckRunContent, CheckRunInfo, PullRequestInfo, RepositoryRef


@pytest.fixture
def core_team(shop: GitHubServer) -> str:
    """A team of the organisation `guild`, with `maintainer` in it."""
    shop.make_team("guild", "core", ["maintainer"])
    return "core"


@pytest.fixture
def in_guild(repository: RepositoryRef, monkeypatch: pytest.MonkeyPatch) -> RepositoryRef:
    """The repository, as if `guild` owned it: so GitHub says with each token that it gives out for it."""
    mint = Clients.mint

    def minted(self: Clients, ref: RepositoryRef, permissions: Permissions) -> Token:
        return replace(mint(self, ref, permissions), full_name=ref.full_name)

    monkeypatch.setattr(Clients, "mint", minted)
    return replace(repository, full_name="guild/shop")


@pytest.fixture
def pull(shop: GitHubServer, forge: GitHubForge, repository: RepositoryRef) -> PullRequestInfo:
    shop.push("feature", {"a.txt": "a\n"})
    return forge.create_pull_request(
        repository, head_ref="feature", base_ref="main", title="Feature", body="", draft=False
    )


def test_only_who_is_in_a_team_now_counts_as_its_member(
    shop: GitHubServer, forge: GitHubForge, repository: RepositoryRef, in_guild: RepositoryRef, core_team: str
) -> None:
    assert forge.is_team_member(in_guild, core_team, "maintainer")
    assert not forge.is_team_member(in_guild, core_team, "reader")
    assert not forge.is_team_member(in_guild, "no-such-team", "maintainer")
    assert not forge.is_team_member(repository, core_team, "maintainer"), "acme has no teams"
    invited = Answer(200, {"url": "http://localhost/x", "role": "member", "state": "pending"})
    shop.on("GET", "/memberships/", invited)
    assert not forge.is_team_member(in_guild, core_team, "maintainer"), "an invitation is no membership"


def test_people_are_asked_for_reviews_and_asking_again_changes_nothing(
    shop: GitHubServer, forge: GitHubForge, repository: RepositoryRef, pull: PullRequestInfo
) -> None:
    for _ in range(2):
        forge.request_reviews(repository, pull.number, ["maintainer", "reader"], [])
    told = httpx.get(f"{shop.base_url}/repos/acme/shop/pulls/{pull.number}").json()
    assert sorted(person["login"] for person in told["requested_reviewers"]) == ["maintainer", "reader"]


def test_reviewers_that_cannot_be_asked_are_a_refusal_with_githubs_words(
    forge: GitHubForge, repository: RepositoryRef, pull: PullRequestInfo
) -> None:
    with pytest.raises(ForgeError, match=f"ask for reviews of PR {pull.number}.*Team reviewers"):
        forge.request_reviews(repository, pull.number, [], ["core"])


def test_failed_jobs_run_once_more_and_not_twice(
    shop: GitHubServer, forge: GitHubForge, repository: RepositoryRef
) -> None:
    sha = shop.push("feature", {"a.txt": "a\n"})
    run = shop.fail_ci(sha, "feature")
    assert forge.rerun_failed_jobs(repository, run)
    assert not forge.rerun_failed_jobs(repository, run), "it has failed twice now"
    assert shop.count("POST", f".*/runs/{run}/rerun-failed-jobs") == 1


def test_an_app_that_may_only_read_actions_does_without_a_second_run(
    shop: GitHubServer, forge: GitHubForge, repository: RepositoryRef
) -> None:
    run = shop.fail_ci(shop.push("feature", {"a.txt": "a\n"}), "feature")
    shop.on("POST", "/rerun-failed-jobs", Answer(403, {"message": "Resource not accessible by integration"}))
    assert not forge.rerun_failed_jobs(repository, run)


def test_the_jobs_that_fail_on_another_branch_are_named(
    shop: GitHubServer, forge: GitHubForge, repository: RepositoryRef
) -> None:
    main = shop.push("main", {"b.txt": "b\n"})
    shop.fail_ci(main, "main", jobs=[("lint", "E501\n"), ("test", "FAILED\n")])
    run = shop.fail_ci(shop.push("feature", {"a.txt": "a\n"}), "feature")
    assert forge.failing_jobs(repository, run, "main") == {"lint", "test"}
    shop.pass_ci(main, "main")
    assert forge.failing_jobs(repository, run, "main") == frozenset()


def test_a_file_is_proposed_once_and_kept_level(
    shop: GitHubServer, forge: GitHubForge, repository: RepositoryRef
) -> None:
    def propose(text: str) -> PullRequestInfo:
        return forge.propose_file(
            repository, branch="acrouter/configure", path=".acrouter.yml", text=text, title="Configure", body="Why."
        )

    first = propose("on_ci_failure: false\n")
    assert (first.base_ref, first.state, first.title) == ("main", "open", "Configure")
    assert propose("on_ci_failure: false\n").number == first.number
    assert propose("on_ci_failure: true\n").number == first.number
    assert shop.count("PUT", ".*/contents/.*") == 2, "the same text is not written again"
    assert forge.file_text(repository, ".acrouter.yml", "acrouter/configure") == "on_ci_failure: true\n"
    assert forge.file_text(repository, ".acrouter.yml", "") is None, "nothing is in force before the merge"


def test_the_checks_of_a_suite_are_told_with_what_they_stand_for(
    shop: GitHubServer, forge: GitHubForge, repository: RepositoryRef, pull: PullRequestInfo
) -> None:
    face = CheckRunContent("At work", "", None)
    check = forge.upsert_check_run(repository, pull.head_sha, "acrouter-task-7", face, None)
    listed = httpx.get(f"{shop.base_url}/repos/acme/shop/check-runs/{check}").json()
    found = forge.check_runs_of_suite(repository, listed["check_suite"]["id"])
    assert CheckRunInfo(check, "acrouter-task-7") in found
