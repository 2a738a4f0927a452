"""The two other triggers: `/route fix` on a PR, and a failed CI run."""

import pytest

from bot.demo.bugs import find_bug
from store.states import OutcomeKind, TaskKind, TaskState
from tests.acceptance.conftest import CONFIG, Host, issue_of
from tests.support.github.server import GitHubServer
from tests.support.installation import Installation

pytestmark = [pytest.mark.docker, pytest.mark.postgres, pytest.mark.redis, pytest.mark.node, pytest.mark.timeout(600)]

BUG = "sqlparse-optimizer-hints"


@pytest.fixture(scope="module")
def bugs() -> tuple[str, ...]:
    return (BUG,)


def test_route_fix_on_a_pr_opens_a_pr_to_its_branch(
    installation: Installation, github: GitHubServer, host: Host
) -> None:
    host(BUG)
    installation.ensure_worker()
    title, text = issue_of(BUG)
    head = github.push("hints", {"NOTES.md": "On hints.\n"}, by="maintainer")
    number = github.open_pull_request(title, head="hints", body=text)

    github.comment(number, "Could you look?\n\n/route fix", by="maintainer")
    task = installation.wait_until_told()

    assert task.state is TaskState.PUBLISHED, installation.history()
    assert task.kind is TaskKind.PULL_REQUEST
    assert task.base_sha == head
    opened = next(pull for pull in github.pull_requests() if pull["number"] == task.pr_number)
    assert opened["base"]["ref"] == "hints"
    assert github.branches()["hints"] == head, "a person's branch is never pushed to"
    [status] = [c for c in github.comments(number) if "acrouter:task=" in c["body"]]
    assert task.pr_url in status["body"]

    github.merge(opened["number"])
    installation.wait_for_state(TaskState.MERGED)
    assert [outcome.kind for outcome in installation.outcomes()] == [OutcomeKind.MERGED]
    installation.assert_the_ledger_adds_up()


def test_a_failed_ci_run_is_repaired_where_the_repository_says_so(
    installation: Installation, github: GitHubServer, host: Host
) -> None:
    host(BUG, config=CONFIG + "on_ci_failure: [ci]\nrerun_flakes: false\n")
    installation.ensure_worker()
    test = find_bug(BUG).regression_test
    head = github.push("hints", {test.path: test.text}, by="maintainer")
    number = github.open_pull_request("Test optimizer hints", head="hints")

    log = f"collected 1 item\n\x1b[31mFAILED\x1b[0m {test.path} - AssertionError\n{test.text}\n"
    github.fail_ci(head, "hints", workflow="other", jobs=[("test", log)])
    github.fail_ci(head, "hints", workflow="ci", jobs=[("lint", "fine\n"), ("test", log)])
    task = installation.wait_until_told()

    assert task.state is TaskState.PUBLISHED, installation.history()
    assert task.kind is TaskKind.CI_FAILURE
    assert len(installation.tasks()) == 1, "workflow_run and check_suite tell of one failure"
    assert "\x1b" not in task.text
    opened = next(pull for pull in github.pull_requests() if pull["number"] == task.pr_number)
    assert opened["base"]["ref"] == "hints"
    published = installation.attempts()[-1]
    assert installation.verification(published).tests["fail_to_pass"]
    [status] = [c for c in github.comments(number) if "acrouter:task=" in c["body"]]
    assert task.pr_url in status["body"]
    [check] = [check for check in github.check_runs(head) if check["name"] == "acrouter"]
    assert check["conclusion"] == "success"

    # CI on acrouter's own branch is an outcome, not a trigger.
    github.pass_ci(task.head_sha, task.branch)
    installation.wait_for(installation.outcomes, "the outcome of CI")
    assert [outcome.kind for outcome in installation.outcomes()] == [OutcomeKind.CI_PASSED]
    assert len(installation.tasks()) == 1


def test_a_failed_ci_run_starts_nothing_where_the_repository_does_not_say_so(
    installation: Installation, github: GitHubServer, host: Host
) -> None:
    host(BUG)
    installation.ensure_worker()
    head = github.push("hints", {"NOTES.md": "On hints.\n"}, by="maintainer")
    github.fail_ci(head, "hints")
    number = github.open_issue("Anything")
    github.comment(number, "/route help", by="maintainer")
    installation.wait_for(lambda: len(github.comments(number)) == 2, "the answer to a later comment")
    assert installation.tasks() == []
