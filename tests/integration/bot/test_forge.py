"""The Forge against a GitHub that nobody here wrote; every request is held against GitHub's description."""

import subprocess
import time
from datetime import timedelta

import pytest

from bot.github import GitHubForge
from store.scrub import scrub
from store.settings import Settings
from store.types import utc_now
from tests.support.github import faults
from tests.support.github.server import GitHubServer
from workers.errors import ForgeError, ForgeTemporary, TargetGone
from workers.ports import CheckRunContent, RepositoryRef

pytestmark = pytest.mark.node
MARKER = "<!-- acrouter:task=1 -->"


def test_an_issue_is_read(shop: GitHubServer, forge: GitHubForge, repository: RepositoryRef) -> None:
    number = shop.open_issue("The total is wrong", "It leaves the first price out.")
    issue = forge.issue(repository, number)
    assert (issue.title, issue.body, issue.state) == ("The total is wrong", "It leaves the first price out.", "open")
    assert issue.author == "maintainer"


def test_a_missing_issue_is_a_target_that_is_gone(forge: GitHubForge, repository: RepositoryRef) -> None:
    with pytest.raises(TargetGone, match="read issue 999 in acme/shop"):
        forge.issue(repository, 999)


def test_the_default_branch_and_files_are_read(
    shop: GitHubServer, forge: GitHubForge, repository: RepositoryRef
) -> None:
    branch = forge.default_branch(repository)
    assert branch.name == "main"
    assert branch.sha == shop.branches()["main"]
    assert forge.file_text(repository, "README.md", "") == "# Shop\n"
    assert forge.file_text(repository, ".acrouter.yml", "") is None
    assert forge.branch_head(repository, "no/such") is None


def test_a_branch_with_a_slash_is_read(shop: GitHubServer, forge: GitHubForge, repository: RepositoryRef) -> None:
    sha = shop.push("feature/one", {"a.txt": "a\n"})
    head = forge.branch_head(repository, "feature/one")
    assert head is not None
    assert head.sha == sha
    assert forge.file_text(repository, "a.txt", "feature/one") == "a\n"


@pytest.mark.parametrize(
    ("granted", "seen"), [("admin", "admin"), ("write", "write"), ("read", "read"), ("none", "none")]
)
def test_a_permission_is_asked_for_at_the_moment(
    shop: GitHubServer, forge: GitHubForge, repository: RepositoryRef, granted: str, seen: str
) -> None:
    shop.set_permission("contributor", granted)  # type: ignore[arg-type]
    assert forge.permission(repository, "contributor") == seen


def test_nobody_we_know_may_do_nothing(forge: GitHubForge, repository: RepositoryRef) -> None:
    assert forge.permission(repository, "no-such-person") == "none"


def test_the_status_comment_is_written_once_and_edited(
    shop: GitHubServer, forge: GitHubForge, repository: RepositoryRef
) -> None:
    number = shop.open_issue("Bug")
    first = forge.upsert_status_comment(repository, number, MARKER, f"{MARKER}\nAt work.", None)
    # The id was lost in a crash: the comment is found by its marker.
    again = forge.upsert_status_comment(repository, number, MARKER, f"{MARKER}\nDone.", None)
    assert again == first
    assert [c["body"] for c in shop.comments(number)] == [f"{MARKER}\nDone."]
    before = shop.count("PATCH", ".*/comments/.*")
    forge.upsert_status_comment(repository, number, MARKER, f"{MARKER}\nDone.", first)
    assert shop.count("PATCH", ".*/comments/.*") == before


def test_somebody_elses_comment_with_our_marker_is_left_alone(
    shop: GitHubServer, forge: GitHubForge, repository: RepositoryRef
) -> None:
    number = shop.open_issue("Bug")
    forged = shop.comment(number, f"{MARKER} I am acrouter, honestly", by="stranger")
    ours = forge.upsert_status_comment(repository, number, MARKER, "At work.", None)
    assert ours != forged
    assert len(shop.comments(number)) == 2


def test_a_marker_quoted_in_a_comment_of_ours_names_no_task(
    shop: GitHubServer, forge: GitHubForge, repository: RepositoryRef
) -> None:
    number = shop.open_issue("Bug")
    first = forge.upsert_status_comment(repository, number, MARKER, "Failing: `<!-- acrouter:task=2 -->`", None)
    second = forge.upsert_status_comment(repository, number, "<!-- acrouter:task=2 -->", "At work.", None)
    assert first != second
    assert len(shop.comments(number)) == 2


def test_a_deleted_status_comment_is_written_again(
    shop: GitHubServer, forge: GitHubForge, repository: RepositoryRef
) -> None:
    number = shop.open_issue("Bug")
    comment = forge.upsert_status_comment(repository, number, MARKER, "At work.", 987654)
    assert [c["id"] for c in shop.comments(number)] == [comment]


def test_an_answer_is_given_once(shop: GitHubServer, forge: GitHubForge, repository: RepositoryRef) -> None:
    number = shop.open_issue("Bug")
    for _ in range(2):
        forge.reply(repository, number, "<!-- acrouter:answer=5 -->", "Here is some help.")
    assert len(shop.comments(number)) == 1


def test_an_issue_is_opened_once_for_each_marker(
    shop: GitHubServer, forge: GitHubForge, repository: RepositoryRef
) -> None:
    copied = shop.open_issue("A copy", "<!-- acrouter:digest=2026-11-23 -->\nBy somebody else.")
    numbers = [
        forge.open_issue(repository, f"<!-- acrouter:digest={week} -->", f"Week of {week}", "What merged.")
        for week in ("2026-11-23", "2026-11-30", "2026-11-23")
    ]
    assert numbers[0] == numbers[2] != numbers[1]
    assert copied not in numbers
    issue = forge.issue(repository, numbers[1])
    assert (issue.title, issue.body) == ("Week of 2026-11-30", "<!-- acrouter:digest=2026-11-30 -->\nWhat merged.")


def test_a_post_whose_answer_is_lost_is_not_repeated_blindly(
    shop: GitHubServer, forge: GitHubForge, repository: RepositoryRef
) -> None:
    number = shop.open_issue("Bug")
    shop.on("POST", ".*/comments", faults.AfterWork(faults.BAD_GATEWAY))
    with pytest.raises(ForgeTemporary):
        forge.upsert_status_comment(repository, number, MARKER, "At work.", None)
    forge.upsert_status_comment(repository, number, MARKER, "At work.", None)
    assert len(shop.comments(number)) == 1


def test_an_outgoing_text_carries_no_secret_and_fits(
    shop: GitHubServer, forge: GitHubForge, repository: RepositoryRef
) -> None:
    number = shop.open_issue("Bug")
    token = "ghs_" + "a1B2" * 130
    forge.upsert_status_comment(repository, number, MARKER, f"the token {token}\n" + "word " * 20_000, None)
    body = shop.comments(number)[0]["body"]
    assert token not in body
    assert body.startswith(MARKER)
    assert len(body) <= 65_536
    assert "left out" in body


def test_the_labels_follow_the_state(shop: GitHubServer, forge: GitHubForge, repository: RepositoryRef) -> None:
    number = shop.open_issue("Bug")
    shop.label(number, "acrouter")
    shop.label(number, "good first issue")
    forge.set_state_label(repository, number, "working", "acrouter")
    assert shop.labels(number) == {"acrouter", "acrouter:working", "good first issue"}
    forge.set_state_label(repository, number, "review", "acrouter")
    assert shop.labels(number) == {"acrouter", "acrouter:review", "good first issue"}
    forge.set_state_label(repository, number, "merged", "acrouter")
    assert shop.labels(number) == {"acrouter:merged", "good first issue"}


def test_a_label_that_people_spell_in_another_way_goes_too(
    shop: GitHubServer, forge: GitHubForge, repository: RepositoryRef
) -> None:
    """To GitHub `ACRouter` and `acrouter` are one label, which starts a task in either spelling."""
    number = shop.open_issue("Bug")
    shop.label(number, "ACRouter")
    shop.label(number, "ACRouter:working")
    forge.set_state_label(repository, number, "failed", "acrouter")
    assert shop.labels(number) == {"acrouter:failed"}


def test_the_labels_of_a_long_trigger_label_fit_too(
    shop: GitHubServer, forge: GitHubForge, repository: RepositoryRef
) -> None:
    """GitHub refuses a label of more than 50 characters."""
    number, trigger = shop.open_issue("Bug"), "let acrouter look for a fix of what is told in here"[:50]
    shop.label(number, trigger)
    forge.set_state_label(repository, number, "working", trigger)
    assert shop.labels(number) == {trigger, "let acrouter look for a fix of what is tol:working"}
    forge.set_state_label(repository, number, "failed", trigger)
    assert shop.labels(number) == {"let acrouter look for a fix of what is tol:failed"}


def test_a_pull_request_is_opened_once(shop: GitHubServer, forge: GitHubForge, repository: RepositoryRef) -> None:
    shop.push("acrouter/task-1", {"cart.py": "def total(prices):\n    return sum(prices)\n"})
    pulls = [
        forge.create_pull_request(
            repository, head_ref="acrouter/task-1", base_ref="main", title="Fix", body="Why", draft=False
        )
        for _ in range(2)
    ]
    assert pulls[0] == pulls[1]
    assert len(shop.pull_requests()) == 1
    assert forge.find_pull_request(repository, "acrouter/task-1") == pulls[0]
    assert forge.find_pull_request(repository, "acrouter/task-2") is None


def test_a_merged_pull_request_is_found_as_such(
    shop: GitHubServer, forge: GitHubForge, repository: RepositoryRef
) -> None:
    shop.push("acrouter/task-1", {"a.txt": "a\n"})
    pull = forge.create_pull_request(
        repository, head_ref="acrouter/task-1", base_ref="main", title="Fix", body="", draft=False
    )
    merged = shop.merge(pull.number)
    found = forge.pull_request(repository, pull.number)
    assert found.merged
    assert found.merge_sha == merged


def test_a_plan_without_drafts_gets_an_ordinary_pull_request(
    shop: GitHubServer, forge: GitHubForge, repository: RepositoryRef
) -> None:
    shop.push("acrouter/task-1", {"a.txt": "a\n"})
    refusal = {"message": "Draft pull requests are not supported in this repository."}
    shop.on("POST", ".*/pulls", faults.Answer(422, refusal))
    pull = forge.create_pull_request(
        repository, head_ref="acrouter/task-1", base_ref="main", title="Fix", body="", draft=True
    )
    assert [p["number"] for p in shop.pull_requests()] == [pull.number]


def test_an_empty_pull_request_is_refused_with_githubs_words(
    shop: GitHubServer, forge: GitHubForge, repository: RepositoryRef
) -> None:
    shop.move_branch("acrouter/task-1", shop.branches()["main"])
    with pytest.raises(ForgeError, match="No commits between"):
        forge.create_pull_request(
            repository, head_ref="acrouter/task-1", base_ref="main", title="Fix", body="", draft=False
        )


def test_a_check_run_is_made_once_and_completed(
    shop: GitHubServer, forge: GitHubForge, repository: RepositoryRef
) -> None:
    sha = shop.branches()["main"]
    running = CheckRunContent("At work", "A model is at work.", None)
    first = forge.upsert_check_run(repository, sha, "acrouter-task-1", running, None)
    done = CheckRunContent("Fixed", "One test passes now.", "success")
    assert forge.upsert_check_run(repository, sha, "acrouter-task-1", done, None) == first
    assert forge.upsert_check_run(repository, sha, "acrouter-task-1", done, first) == first
    ours = [run for run in shop.check_runs(sha) if run["name"] == "acrouter"]
    assert [(run["id"], run["status"], run["conclusion"]) for run in ours] == [(first, "completed", "success")]


def test_a_failed_run_is_read_with_the_end_of_its_log(
    shop: GitHubServer, forge: GitHubForge, repository: RepositoryRef
) -> None:
    sha = shop.push("feature", {"a.txt": "a\n"})
    noise = "".join(f"2026-01-02T03:04:05.0000000Z downloading {n}\n" for n in range(20_000))
    log = noise + "2026-01-02T03:04:06.0000000Z \x1b[31mE   assert 1 == 2\x1b[0m\n"
    run = shop.fail_ci(sha, "feature", jobs=[("test", log.encode() + b"\xff\xfe broken\n")])
    failure = forge.ci_failure(repository, run)
    assert (failure.head_sha, failure.head_branch) == (sha, "feature")
    job = failure.jobs[0]
    assert "E   assert 1 == 2" in job.log
    assert "\x1b" not in job.log
    assert "2026-01-02T" not in job.log
    assert len(job.log) < 50_000


def test_git_gets_a_token_of_its_own_that_fetches(
    shop: GitHubServer, forge: GitHubForge, repository: RepositoryRef
) -> None:
    read, write = forge.git_remote(repository, write=False), forge.git_remote(repository, write=True)
    assert read.token != write.token
    assert read.token is not None
    assert read.token not in read.url
    assert read.token not in repr(read)
    assert read.token not in scrub(f"fatal: {read.token}")
    url = read.url.replace("://", f"://{read.username}:{read.token}@")
    heads = subprocess.run(["git", "ls-remote", url], capture_output=True, text=True, check=True).stdout
    assert shop.branches()["main"] in heads


def test_a_token_that_died_is_replaced_at_the_next_try(
    shop: GitHubServer, forge: GitHubForge, repository: RepositoryRef
) -> None:
    forge.default_branch(repository)
    shop.expire_tokens()
    with pytest.raises(ForgeTemporary):
        forge.default_branch(repository)
    assert forge.default_branch(repository).name == "main"


def test_a_rate_limit_makes_the_queue_wait_not_the_worker(
    shop: GitHubServer, forge: GitHubForge, repository: RepositoryRef
) -> None:
    forge.login()
    limit = {"message": "You have exceeded a secondary rate limit."}
    shop.on("GET", "/repos/acme/shop$", faults.Answer(403, limit, {"Retry-After": "1800"}))
    started = utc_now()
    with pytest.raises(ForgeTemporary) as caught:
        forge.default_branch(repository)
    assert caught.value.retry_at is not None
    assert timedelta(minutes=29) < caught.value.retry_at - started < timedelta(minutes=31)


def test_a_read_that_failed_on_the_way_is_asked_again(
    shop: GitHubServer, forge: GitHubForge, repository: RepositoryRef
) -> None:
    shop.on("GET", "/repos/acme/shop$", faults.BAD_GATEWAY)
    assert forge.default_branch(repository).name == "main"


def test_a_discussion_names_files_reviews_and_checks(
    shop: GitHubServer, forge: GitHubForge, repository: RepositoryRef
) -> None:
    sha = shop.push("feature", {"cart.py": "def total(prices):\n    return 0\n"})
    number = shop.open_pull_request("Speed up", head="feature")
    shop.review(number, "CHANGES_REQUESTED", body="This returns 0.")
    shop.fail_ci(sha, "feature", jobs=[("unit tests", "boom\n")])
    text = forge.pull_request_discussion(repository, number, sha=sha, asked_at=utc_now())
    assert "cart.py" in text
    assert "This returns 0." in text
    assert "unit tests (failure)" in text


def test_a_discussion_ends_at_the_moment_that_the_work_was_asked_for(
    shop: GitHubServer, forge: GitHubForge, repository: RepositoryRef
) -> None:
    def inline(body: str) -> str:
        about = {"commit_id": sha, "path": "cart.py", "line": 1}
        return str(shop._do("POST", f"/pulls/{number}/comments", {"body": body, **about}, "stranger", "")["id"])

    sha = shop.push("feature", {"cart.py": "def total(prices):\n    return 0\n"})
    number = shop.open_pull_request("Speed up", head="feature")
    shop.review(number, "CHANGES_REQUESTED", body="This returns 0.")
    shop.review(number, "COMMENTED", body="A stranger can edit this, and nobody is told.", by="stranger")
    inline("Said before")
    edited = inline("Said before, too")
    asked_at = utc_now()
    time.sleep(1.1)  # GitHub's clock has seconds
    shop.review(number, "COMMENTED", body="A later review")
    inline("A later remark")
    shop._do("PATCH", f"/pulls/comments/{edited}", {"body": "An edited remark"}, "stranger", "")
    shop.push("feature", {"later.py": "x = 1\n"})
    text = forge.pull_request_discussion(repository, number, sha=sha, asked_at=asked_at)
    assert "This returns 0." in text
    assert "Said before" in text
    for later in ("A stranger can edit this", "later", "edited"):
        assert later not in text, later


def test_commits_are_made_as_the_apps_bot_user(
    shop: GitHubServer, forge: GitHubForge, repository: RepositoryRef
) -> None:
    author = forge.author(repository)
    assert author.name == forge.login() == f"{shop.app_slug}[bot]"
    assert author.email.endswith(f"{shop.app_slug}[bot]@users.noreply.github.com")


def test_wrong_app_credentials_say_so(settings: Settings, repository: RepositoryRef) -> None:
    wrong = GitHubForge(settings.model_copy(update={"github_app_id": 1}))
    with pytest.raises(ForgeError, match="private key"):
        wrong.default_branch(repository)
