"""The same stories on both GitHubs: what an App reads, writes and hears is what GitHub's description says."""

import os
from pathlib import Path

import httpx
import pytest
from github import GithubException
from github.ContentFile import ContentFile
from github.Repository import Repository

from bot.github_app.needs import lacking_events
from tests.integration.github.conftest import Forge, commit_all, git
from tests.support.github.server import new_private_key
from tests.support.github.webhook_schema import webhook_problems

BRANCH = "acrouter/issue-1"


def content(repository: Repository, path: str) -> bytes:
    found = repository.get_contents(path, ref="trunk")
    assert isinstance(found, ContentFile)
    return found.decoded_content


def pushed_fix(forge: Forge, folder: Path, token: str) -> str:
    git(folder, "clone", "--quiet", forge.clone_url(token), "work")
    work = folder / "work"
    git(work, "checkout", "--quiet", "-b", BRANCH)
    (work / "widget" / "size.py").write_text("SIZE = 2\n", encoding="utf-8")
    sha = commit_all(work, "Double the size")
    git(work, "push", "--quiet", "origin", BRANCH)
    return sha


def test_the_repository_comes_over_commit_by_commit(forge: Forge, source: Path) -> None:
    repository = forge.repository()
    assert repository.default_branch == "trunk"
    assert repository.get_branch("trunk").commit.sha == git(source, "rev-parse", "HEAD")
    assert content(repository, "widget/área.py") == b"AREA = 1\n"
    assert content(repository, "logo.bin") == bytes(range(256))
    with pytest.raises(GithubException) as refused:
        repository.get_contents("no/such/file")
    assert refused.value.status == 404


def test_an_issue_is_labelled_and_the_app_comments_and_edits(forge: Forge) -> None:
    number = forge.story.open_issue("It breaks", "On Tuesdays.")
    forge.story.label(number, "acrouter")
    issue = forge.repository().get_issue(number)
    assert (issue.title, issue.body, [label.name for label in issue.labels]) == (
        "It breaks",
        "On Tuesdays.",
        ["acrouter"],
    )

    comment = issue.create_comment("Working on it.")
    comment.edit("Done.")
    issue.add_to_labels("acrouter: review")
    issue.remove_from_labels("acrouter")

    assert [one["body"] for one in forge.story.comments(number)] == ["Done."]
    assert forge.story.labels(number) == {"acrouter: review"}
    forge.settle()
    assert forge.listener.last("issues.labeled").payload["label"]["name"] == "acrouter: review"
    assert forge.listener.last("issue_comment.created").payload["sender"]["login"] == "acrouter[bot]"
    assert forge.listener.last("issue_comment.created").payload["sender"]["type"] == "Bot"


def test_permissions_are_told_in_github_s_four_words(forge: Forge) -> None:
    forge.story.set_permission("reader", "read")
    repository = forge.repository()
    forge.story.open_issue("Hello", by="stranger")
    told = {name: repository.get_collaborator_permission(name) for name in ("acme", "maintainer", "reader", "stranger")}
    assert told == {"acme": "admin", "maintainer": "write", "reader": "read", "stranger": "read"}
    forge.story.set_permission("maintainer", "none")
    assert repository.get_collaborator_permission("maintainer") == "none"
    with pytest.raises(GithubException) as refused:
        repository.get_collaborator_permission("nobody-of-that-name")
    assert refused.value.status == 404


def test_a_fix_is_pushed_proposed_checked_and_merged(forge: Forge, tmp_path: Path) -> None:
    number = forge.story.open_issue("The size is wrong")
    token = forge.token()
    repository = forge.repository(token)
    sha = pushed_fix(forge, tmp_path, token)
    assert repository.get_branch(BRANCH).commit.sha == sha

    pull = repository.create_pull(title="Double the size", body=f"Fixes #{number}", head=BRANCH, base="trunk")
    assert (pull.head.sha, pull.base.ref, pull.changed_files, pull.additions) == (sha, "trunk", 1, 1)
    assert [file.filename for file in pull.get_files()] == ["widget/size.py"]
    assert [commit.sha for commit in pull.get_commits()] == [sha]
    assert [one.number for one in repository.get_pulls(head=f"acme:{BRANCH}", state="all")] == [pull.number]

    output: dict[str, str | list[dict[str, str | int]]] = {"title": "Verifying", "summary": "The tests run."}
    check = repository.create_check_run("acrouter", sha, status="in_progress", external_id="task-1", output=output)
    check.edit(status="completed", conclusion="success", output=output)
    assert [(run["name"], run["conclusion"]) for run in forge.story.check_runs(sha)] == [("acrouter", "success")]

    forge.story.review(pull.number, "CHANGES_REQUESTED", body="Why two?")
    assert [(review.state, review.body) for review in pull.get_reviews()] == [("CHANGES_REQUESTED", "Why two?")]
    merged = forge.story.merge(pull.number)

    pull = repository.get_pull(pull.number)
    assert (pull.merged, pull.state, pull.merge_commit_sha, pull.head.sha) == (True, "closed", merged, sha)
    assert repository.get_branch("trunk").commit.sha == merged == forge.story.branches()["trunk"]
    git(tmp_path / "work", "fetch", "--quiet", "origin")
    assert git(tmp_path / "work", "show", "origin/trunk:widget/size.py") == "SIZE = 2"
    assert forge.story.issue(number)["state"] == "closed"
    forge.settle()
    closed = forge.listener.last("pull_request.closed").payload
    assert (closed["pull_request"]["merged"], closed["pull_request"]["merge_commit_sha"]) == (True, merged)
    assert closed["sender"]["login"] == "maintainer"
    assert forge.listener.last("pull_request_review.submitted").payload["review"]["state"] == "changes_requested"


def test_a_merge_keeps_what_the_base_gained_meanwhile(forge: Forge) -> None:
    forge.story.push(BRANCH, {"widget/new.py": "NEW = 1\n"})
    number = forge.story.open_pull_request("Something new", head=BRANCH)
    forge.story.push("trunk", {"elsewhere.txt": "kept\n"})
    forge.story.merge(number)
    repository = forge.repository()
    assert content(repository, "elsewhere.txt") == b"kept\n"
    assert content(repository, "widget/new.py") == b"NEW = 1\n"


def test_an_empty_and_a_second_pull_request_are_refused(forge: Forge, source: Path) -> None:
    forge.story.push("same", {"a.txt": "a\n"})
    forge.story.merge(forge.story.open_pull_request("First", head="same"))
    forge.story.push(BRANCH, {"b.txt": "b\n"})
    forge.story.open_pull_request("Second", head=BRANCH)
    repository = forge.repository()
    for head, why in (
        ("same", "No commits between trunk and same"),
        (BRANCH, "A pull request already exists for acme:"),
    ):
        with pytest.raises(GithubException) as refused:
            repository.create_pull(title="Again", body="", head=head, base="trunk")
        assert refused.value.status == 422
        assert why in refused.value.data["errors"][0]["message"]
    with pytest.raises(GithubException) as refused:
        repository.create_pull(title="Nothing", body="", head="no-such-branch", base="trunk")
    assert refused.value.data["errors"][0]["field"] == "head"
    assert len(forge.story.pull_requests()) == 2


def test_a_push_to_an_open_pull_request_moves_its_head(forge: Forge) -> None:
    forge.story.push(BRANCH, {"b.txt": "1\n"})
    number = forge.story.open_pull_request("A change", head=BRANCH)
    sha = forge.story.push(BRANCH, {"b.txt": "2\n"}, by="contributor")
    assert forge.repository().get_pull(number).head.sha == sha
    forge.settle()
    moved = forge.listener.last("pull_request.synchronize").payload
    assert (moved["after"], moved["pull_request"]["head"]["sha"]) == (sha, sha)
    assert forge.listener.last("push").payload["ref"] == f"refs/heads/{BRANCH}"
    forge.story.close(number)
    forge.settle()
    assert forge.listener.last("pull_request.closed").payload["pull_request"]["merged"] is False


def test_a_comment_on_a_pull_request_says_that_it_is_one(forge: Forge) -> None:
    forge.story.push(BRANCH, {"b.txt": "1\n"})
    number = forge.story.open_pull_request("A change", head=BRANCH)
    forge.story.comment(number, "/route fix")
    forge.settle()
    issue = forge.listener.last("issue_comment.created").payload["issue"]
    assert issue["pull_request"]["url"].endswith(f"/repos/acme/widget/pulls/{number}")
    forge.story.label(number, "acrouter")
    forge.settle()
    assert forge.listener.last("pull_request.labeled").payload["number"] == number


def test_a_failed_run_is_told_twice_and_its_log_lies_elsewhere(forge: Forge) -> None:
    sha = forge.story.push(BRANCH, {"b.txt": "1\n"})
    number = forge.story.open_pull_request("A change", head=BRANCH)
    log = b"\x1b[31mFAILED\x1b[0m test_size - \xff\n"
    run_id = forge.story.fail_ci(sha, BRANCH, workflow="tests", jobs=[("unit", log), ("lint", "1 error\n")])

    run = forge.repository(token := forge.token()).get_workflow_run(run_id)
    assert (run.name, run.conclusion, run.head_sha, run.head_branch) == ("tests", "failure", sha, BRANCH)
    jobs = list(run.jobs())
    assert [job.name for job in jobs] == ["unit", "lint"]
    assert [step.name for step in jobs[0].steps if step.conclusion == "failure"] == ["Run the tests"]

    bearer = {"Authorization": f"Bearer {token}"}
    moved = httpx.get(f"{jobs[0].url}/logs", headers=bearer)
    assert moved.status_code == 302
    assert httpx.get(moved.headers["location"], headers=bearer).status_code == 400
    assert httpx.get(moved.headers["location"]).content == log

    forge.settle()
    told = forge.listener.last("workflow_run.completed").payload["workflow_run"]
    assert (told["id"], told["pull_requests"][0]["number"]) == (run_id, number)
    assert forge.listener.last("check_suite.completed").payload["check_suite"]["head_branch"] == BRANCH
    assert {(c["name"], c["conclusion"]) for c in forge.story.check_runs(sha)} == {
        ("unit", "failure"),
        ("lint", "failure"),
    }


def test_every_webhook_is_signed_unique_and_as_published(forge: Forge) -> None:
    number = forge.story.open_issue("It breaks")
    forge.story.label(number, "acrouter")
    forge.story.comment(number, "/route fix")
    sha = forge.story.push(BRANCH, {"b.txt": "1\n"})
    pull = forge.story.open_pull_request("A change", head=BRANCH)
    forge.story.comment(pull, "/route explain")
    forge.story.review(pull, "APPROVED", body="Good.")
    forge.story.fail_ci(sha, BRANCH)
    forge.story.pass_ci(sha, BRANCH)
    forge.story.merge(pull)
    forge.settle()
    heard = forge.listener.heard
    assert forge.listener.forged == 0
    assert len({one.guid for one in heard}) == len(heard)
    assert all(one.payload["installation"]["id"] for one in heard)
    problems = {f"{one.name}: {problem}" for one in heard for problem in webhook_problems(one.event, one.payload)}
    assert not problems, "\n".join(sorted(problems))


def test_the_app_is_told_of_everything_that_it_needs(forge: Forge) -> None:
    assert lacking_events(forge.integration().get_app().events) == []


def test_only_the_app_s_key_mints_tokens(forge: Forge) -> None:
    stranger = Forge(forge.story, forge.settle, forge.listener, new_private_key(), forge.port)
    with pytest.raises(GithubException) as refused:
        stranger.integration().get_app()
    assert refused.value.status == 401
    with pytest.raises(GithubException) as refused:
        forge.token(administration="write")
    assert refused.value.status == 422
    with pytest.raises(GithubException) as refused:
        forge.repository("ghs_made_up")
    assert refused.value.status == 401


def test_a_push_needs_a_token_that_may_write_contents(forge: Forge, tmp_path: Path) -> None:
    reading = forge.token(contents="read", metadata="read")
    git(tmp_path, "clone", "--quiet", forge.clone_url(reading), "work")
    work = tmp_path / "work"
    (work / "new.txt").write_text("new\n", encoding="utf-8")
    commit_all(work, "Add a file")
    for token in (reading, "ghs_made_up"):
        with pytest.raises(Exception, match="returned non-zero exit status 128"):
            git(work, "push", "--quiet", forge.clone_url(token), "HEAD:refs/heads/new")
    assert "new" not in forge.story.branches()
    git(work, "push", "--quiet", forge.clone_url(forge.token()), "HEAD:refs/heads/new")
    assert forge.story.branches()["new"] == git(work, "rev-parse", "HEAD")


def test_a_large_push_arrives_whole(forge: Forge, tmp_path: Path) -> None:
    token = forge.token()
    git(tmp_path, "clone", "--quiet", forge.clone_url(token), "work")
    work = tmp_path / "work"
    # Above git's http.postBuffer of 1 MiB the pack comes in chunks; random bytes do not get smaller.
    (work / "large.bin").write_bytes(os.urandom(3_000_000))
    sha = commit_all(work, "Add a large file")
    git(work, "push", "--quiet", "origin", "HEAD:refs/heads/large")
    assert forge.story.branches()["large"] == sha


def test_deliveries_are_listed_and_sent_again_with_their_id(forge: Forge) -> None:
    number = forge.story.open_issue("It breaks")
    forge.settle()
    first = forge.listener.last("issues.opened")
    headers = {"Authorization": f"Bearer {forge.app_token()}"}
    listed = httpx.get(f"{forge.story.base_url}/app/hook/deliveries", headers=headers).json()
    chosen = next(one for one in listed if one["guid"] == first.guid)
    assert (chosen["event"], chosen["action"], chosen["status_code"]) == ("issues", "opened", 202)
    again = httpx.post(f"{forge.story.base_url}/app/hook/deliveries/{chosen['id']}/attempts", headers=headers)
    assert again.status_code == 202
    forge.settle()
    repeated = [one for one in forge.listener.heard if one.guid == first.guid]
    assert [one.payload["issue"]["number"] for one in repeated] == [number, number]
