"""Failed CI that starts tasks, and what becomes of acrouter's own PRs."""

import httpx
import pytest

from bot.demo.hub.git import Identity
from bot.demo.hub.webhooks import Delivery
from bot.signature import sign
from store.states import OutcomeKind, TaskKind, TaskState
from store.tables import Task
from tests.support.services import wait_until
from tests.support.world import World
from workers.outcomes import record_end
from workers.reports import repository_ref

pytestmark = pytest.mark.node


def published(world: World) -> tuple[int, int]:
    """Let acrouter have opened a PR for an issue; return the task's id and the PR's number."""
    world.github.label(world.github.open_issue("Bug"), "acrouter")
    world.settle()
    task_id = world.tasks()[0].id or 0
    return task_id, world.publish(task_id)


def kinds(world: World) -> list[OutcomeKind]:
    return [outcome.kind for outcome in world.outcomes()]


def test_a_failed_run_starts_one_task_though_two_events_tell_of_it(world: World) -> None:
    world.github.push("main", {".acrouter.yml": "on_ci_failure: true\nrerun_flakes: false\n"})
    sha = world.github.push("feature", {"a.txt": "a\n"})
    run = world.github.fail_ci(sha, "feature")
    world.settle()
    (task,) = world.tasks()
    assert (task.kind, task.ci_run_id, task.base_ref, task.base_sha) == (TaskKind.CI_FAILURE, run, "feature", sha)
    assert task.target.endswith("/branch/feature")
    # The events come again when the task has long ended.
    world.end(task.id or 0)
    for delivery in [d for d in world.github.deliveries if d.event in ("workflow_run", "check_suite")]:
        send_anew(world, delivery)
    world.settle()
    assert len(world.tasks()) == 1


def test_the_check_suite_alone_is_enough(world: World) -> None:
    world.github.push("main", {".acrouter.yml": "on_ci_failure: true\nrerun_flakes: false\n"})
    sha = world.github.push("feature", {"a.txt": "a\n"})
    world.settle()
    world.github.lose_webhooks(1)
    run = world.github.fail_ci(sha, "feature")
    world.settle()
    assert [task.ci_run_id for task in world.tasks()] == [run]


def test_a_failed_run_of_a_pr_puts_its_words_there(world: World) -> None:
    world.github.push("main", {".acrouter.yml": "on_ci_failure: [ci]\nrerun_flakes: false\n"})
    sha = world.github.push("feature", {"a.txt": "a\n"})
    number = world.github.open_pull_request("Feature", head="feature")
    world.github.fail_ci(sha, "feature", workflow="ci")
    world.settle()
    (task,) = world.tasks()
    assert task.target_number == number
    assert task.target.endswith(f"/pull/{number}")


@pytest.mark.parametrize("text", [None, "on_ci_failure: false\n", "on_ci_failure: [nightly]\n", "on_ci_failur: true\n"])
def test_a_failed_run_starts_nothing_unless_the_default_branch_says_so(world: World, text: str | None) -> None:
    if text is not None:
        world.github.push("main", {".acrouter.yml": text})
    # The branch's own word does not count.
    sha = world.github.push("feature", {".acrouter.yml": "on_ci_failure: true\nrerun_flakes: false\n"})
    world.github.fail_ci(sha, "feature")
    world.settle()
    assert world.tasks() == []


@pytest.mark.parametrize("event", ["issue_comment", "issues", "pull_request_target", "watch", "workflow_run"])
def test_a_run_that_a_stranger_can_make_fail_starts_nothing(world: World, event: str) -> None:
    sha = world.github.push("main", {".acrouter.yml": "on_ci_failure: true\nrerun_flakes: false\n"})
    world.github.fail_ci(sha, "main", event=event)
    world.settle()
    assert world.tasks() == []


def test_an_old_run_of_a_branch_that_moved_on_starts_nothing(world: World) -> None:
    world.github.push("main", {".acrouter.yml": "on_ci_failure: true\nrerun_flakes: false\n"})
    old = world.github.push("feature", {"a.txt": "a\n"})
    world.github.push("feature", {"a.txt": "b\n"})
    world.github.fail_ci(old, "feature")
    world.settle()
    assert world.tasks() == []


def test_ci_on_our_own_branch_is_an_outcome_and_starts_nothing(world: World) -> None:
    world.github.push("main", {".acrouter.yml": "on_ci_failure: true\nrerun_flakes: false\n"})
    task_id, _ = published(world)
    head = world.tasks()[0].head_sha
    world.github.fail_ci(head, "acrouter/task-1")
    world.settle()
    assert [(o.task_id, o.kind) for o in world.outcomes()] == [(task_id, OutcomeKind.CI_FAILED)]
    world.github.pass_ci(head, "acrouter/task-1")
    world.settle()
    assert kinds(world) == [OutcomeKind.CI_FAILED, OutcomeKind.CI_PASSED]
    assert len(world.tasks()) == 1


@pytest.mark.parametrize("event", ["pull_request_review", "pull_request_review_comment", "pull_request_target"])
def test_a_run_that_a_stranger_can_make_fail_is_no_outcome_of_our_pr(world: World, event: str) -> None:
    published(world)
    head = world.tasks()[0].head_sha
    world.github.fail_ci(head, "acrouter/task-1", event=event)
    world.settle()
    assert kinds(world) == []


def test_a_merge_is_an_outcome_once(world: World) -> None:
    task_id, pull = published(world)
    sha = world.github.merge(pull)
    world.settle()
    (outcome,) = world.outcomes()
    assert (outcome.task_id, outcome.kind, outcome.data["merge_sha"]) == (task_id, OutcomeKind.MERGED, sha)
    assert world.tasks()[0].state is TaskState.MERGED


def test_a_pr_closed_without_a_merge_is_an_outcome(world: World) -> None:
    _, pull = published(world)
    world.github.close(pull)
    world.settle()
    assert kinds(world) == [OutcomeKind.CLOSED]
    assert world.tasks()[0].state is TaskState.CLOSED


def unnumbered(world: World, task_id: int) -> None:
    """Let the fix be on its branch, with no PR that acrouter knows of."""
    with world.database.session() as session:
        session.add(session.get_one(Task, task_id).sqlmodel_update({"pr_number": None}))


def test_a_pr_whose_number_is_not_written_down_yet_is_known_by_its_branch(world: World) -> None:
    task_id, pull = published(world)
    unnumbered(world, task_id)
    world.github.close(pull)
    world.settle()
    assert kinds(world) == [OutcomeKind.CLOSED]


def test_a_strangers_pr_of_our_commit_says_nothing_of_it(world: World) -> None:
    task_id, _ = published(world)
    unnumbered(world, task_id)
    world.github.fork("stranger")
    number = world.github.open_pull_request("Mine", head="stranger:acrouter/task-1", by="stranger")
    world.github.close(number, by="stranger")
    world.settle()
    assert kinds(world) == []
    assert world.tasks()[0].state is TaskState.PUBLISHED


def test_commits_on_a_forks_branch_of_the_same_name_are_none_on_ours(world: World) -> None:
    fork = world.github.fork("stranger")
    published(world)
    world.github.push("acrouter/task-1", {"a.txt": "a\n"}, by="stranger", repository=fork)
    world.github.open_pull_request("Mine", head="stranger:acrouter/task-1", by="stranger")
    world.github.push("acrouter/task-1", {"a.txt": "b\n"}, by="stranger", repository=fork)
    world.settle()
    assert any(sent.event == "pull_request" and sent.action == "synchronize" for sent in world.github.deliveries)
    assert kinds(world) == []


def test_a_revert_on_the_default_branch_is_an_outcome(world: World) -> None:
    _, pull = published(world)
    sha = world.github.merge(pull)
    message = f'Revert "Fix"\n\nThis reverts commit {sha}.'
    world.github.push("main", {"fix.txt": "as before\n"}, message=message)
    world.settle()
    assert sorted(kinds(world)) == [OutcomeKind.MERGED, OutcomeKind.REVERTED]


def test_a_revert_that_is_told_before_the_merge_counts_all_the_same(world: World) -> None:
    _, pull = published(world)
    world.github.settle()
    hook, world.github.webhook_url = world.github.webhook_url, None
    sha = world.github.merge(pull)
    wait_until(lambda: any(d.event == "pull_request" and d.action == "closed" for d in world.github.deliveries))
    world.github.settle()
    world.github.webhook_url = hook
    world.github.push("main", {"fix.txt": "as before\n"}, message=f"This reverts commit {sha}.")
    world.settle()
    assert kinds(world) == [OutcomeKind.REVERTED]
    late = next(d for d in world.github.deliveries if d.event == "pull_request" and d.action == "closed")
    world.github.redeliver(late)
    world.settle()
    assert kinds(world) == [OutcomeKind.REVERTED, OutcomeKind.MERGED]


def test_githubs_revert_button_is_the_same_revert(world: World) -> None:
    _, pull = published(world)
    sha = world.github.merge(pull)
    world.settle()
    world.github.push("revert-1", {"fix.txt": "as before\n"}, message=f"This reverts commit {sha}.")
    revert = world.github.open_pull_request('Revert "Fix"', head="revert-1", body=f"Reverts acme/shop#{pull}")
    world.github.merge(revert)
    world.settle()
    assert kinds(world) == [OutcomeKind.MERGED, OutcomeKind.REVERTED]


def strangers_pull(world: World, body: str, files: dict[str, str], message: str = "Fix a typo") -> int:
    fork = world.github.fork("stranger")
    world.github.push("typo", files, message=message, by="stranger", repository=fork)
    return world.github.open_pull_request("Fix a typo", head="stranger:typo", by="stranger", body=body)


@pytest.mark.parametrize("words", ["Reverts #{pull}", "<!--\nReverts #{pull}\n-->"])
@pytest.mark.parametrize("files", [{"README.md": "# The shop\n"}, {"fix.txt": "as before\n"}])
def test_a_strangers_pr_that_says_it_reverts_ours_does_not(world: World, words: str, files: dict[str, str]) -> None:
    _, pull = published(world)
    world.github.merge(pull)
    world.settle()
    world.github.merge(strangers_pull(world, words.format(pull=pull), files))
    world.settle()
    assert kinds(world) == [OutcomeKind.MERGED]


@pytest.mark.parametrize("files", [{"README.md": "# The shop\n"}, {"fix.txt": "as before\n"}])
def test_a_strangers_commit_that_says_it_reverts_ours_does_not(world: World, files: dict[str, str]) -> None:
    _, pull = published(world)
    sha = world.github.merge(pull)
    world.settle()
    world.github.merge(strangers_pull(world, "", files, message=f"Fix a typo\n\nThis reverts commit {sha}."))
    world.settle()
    assert kinds(world) == [OutcomeKind.MERGED]


def test_a_maintainers_pr_that_takes_nothing_back_reverts_nothing(world: World) -> None:
    _, pull = published(world)
    sha = world.github.merge(pull)
    world.settle()
    world.github.push("other", {"README.md": "# The shop\n"}, message=f"This reverts commit {sha}.")
    other = world.github.open_pull_request("Words", head="other", body=f"Reverts acme/shop#{pull}")
    world.github.merge(other)
    world.settle()
    assert kinds(world) == [OutcomeKind.MERGED]


def test_a_revert_by_hand_in_a_maintainers_pr_is_told_by_its_commit(world: World) -> None:
    _, pull = published(world)
    sha = world.github.merge(pull)
    world.settle()
    world.github.push("undo", {"fix.txt": None}, message=f"This reverts commit {sha}.")
    world.github.merge(world.github.open_pull_request("It made things worse", head="undo"))
    world.settle()
    assert kinds(world) == [OutcomeKind.MERGED, OutcomeKind.REVERTED]


def test_a_maintainers_request_for_changes_is_an_outcome_and_a_strangers_is_not(world: World) -> None:
    _, pull = published(world)
    world.github.review(pull, "CHANGES_REQUESTED", by="stranger")
    world.settle()
    assert kinds(world) == []
    world.github.review(pull, "CHANGES_REQUESTED", by="contributor")
    world.github.set_permission("contributor", "write")
    world.settle()
    assert kinds(world) == [OutcomeKind.CHANGES_REQUESTED]


def test_somebody_elses_commits_on_our_branch_are_one_outcome(world: World) -> None:
    published(world)
    sha = world.github.push("acrouter/task-1", {"more.txt": "x\n"})
    world.settle()
    assert [(o.kind, o.ref) for o in world.outcomes()] == [(OutcomeKind.FOREIGN_COMMITS, sha)]


def test_our_branch_that_somebody_brought_up_to_date_with_its_base_is_our_work_still(world: World) -> None:
    published(world)
    github, who = world.github, Identity("maintainer", "maintainer@example.com")
    ours = github.branches()["acrouter/task-1"]
    main = github.push("main", {"other.txt": "x\n"})
    updated = github.bare().merge("acrouter/task-1", main, "Merge branch 'main' into acrouter/task-1", who)
    github.move_branch("acrouter/task-1", updated)
    world.settle()
    assert github.branches()["acrouter/task-1"] != ours
    assert kinds(world) == []
    world.github.push("acrouter/task-1", {"more.txt": "x\n"})
    world.settle()
    assert kinds(world) == [OutcomeKind.FOREIGN_COMMITS]


def test_a_pr_of_ours_that_is_opened_again_is_waited_for_again(world: World) -> None:
    _, pull = published(world)
    world.github.close(pull)
    world.settle()
    assert [task.state for task in world.tasks()] == [TaskState.CLOSED]
    world.github._do("PATCH", f"/pulls/{pull}", {"state": "open"}, "maintainer", "")
    world.settle()
    (task,) = world.tasks()
    assert (task.state, task.reason, task.report_due) == (TaskState.PUBLISHED, f"PR {pull} was opened again.", True)
    world.github.merge(pull)
    world.settle()
    assert [task.state for task in world.tasks()] == [TaskState.MERGED]


def test_each_end_of_a_pr_that_is_opened_again_is_found_though_no_webhook_tells_of_it(world: World) -> None:
    task_id, pull = published(world)
    (task,), forge = world.tasks(), world.runtime.forge
    assert forge is not None
    for _ in range(2):
        world.github.lose_webhooks(1)
        world.github.close(pull)
        world.settle()
        found = forge.pull_request(repository_ref(world.runtime, task.repository_id or 0), pull)
        record_end(world.database, task_id, found)
        assert [task.state for task in world.tasks()] == [TaskState.CLOSED]
        world.github._do("PATCH", f"/pulls/{pull}", {"state": "open"}, "maintainer", "")
        world.settle()
        assert [task.state for task in world.tasks()] == [TaskState.PUBLISHED]
    assert kinds(world) == [OutcomeKind.CLOSED]


def send_anew(world: World, delivery: Delivery) -> None:
    """Send a webhook's body again under another delivery id."""
    headers = {
        "X-GitHub-Event": delivery.event,
        "X-GitHub-Delivery": f"again-{delivery.guid}",
        "X-Hub-Signature-256": sign(delivery.body, world.github.webhook_secret),
    }
    httpx.post(world.github.webhook_url or "", content=delivery.body, headers=headers).raise_for_status()
