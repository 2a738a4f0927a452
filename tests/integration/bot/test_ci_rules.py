"""Which failed runs cost money: not a flake's first attempt, not the base branch's own failures."""

import pytest
from sqlmodel import select

from bot.errors import NotYet
from bot.events import CheckSuiteCompleted, Sender
from store.database import Database
from store.states import OutcomeKind, TaskKind, TaskState
from store.tables import Outcome, Task
from tests.support.rows import add_task
from tests.support.story import APP_ID, NOW, REPOSITORY, Story
from workers.ports import PullRequestInfo


@pytest.fixture
def story(sqlite_database: Database) -> Story:
    made = Story(sqlite_database)
    made.configure("on_ci_failure: true\n")
    return made


def open_pull(story: Story, branch: str = "feature") -> None:
    story.forge.pulls[branch] = PullRequestInfo(
        number=9,
        title="Feature",
        body="",
        state="open",
        merged=False,
        head_ref=branch,
        head_sha="d" * 40,
        head_repository="octo/tools",
        base_repository="octo/tools",
        base_ref="main",
        url="https://github.example/octo/tools/pull/9",
    )


def test_a_failed_run_runs_once_more_before_money_is_spent(story: Story) -> None:
    assert story.ci_fails() == "its failed jobs run once more first: it may be a flake"
    assert story.tasks() == []
    assert story.ci_fails(attempt=2) is None
    assert [task.kind for task in story.tasks()] == [TaskKind.CI_FAILURE]
    assert story.forge.calls.count("rerun_failed_jobs") == 2


def test_where_the_app_may_not_run_it_again_the_work_starts_at_once(story: Story) -> None:
    story.forge.may_rerun = False
    assert story.ci_fails() is None
    assert len(story.tasks()) == 1


def test_a_repository_can_do_without_the_second_run(story: Story) -> None:
    story.configure("on_ci_failure: true\nrerun_flakes: false\n")
    assert story.ci_fails() is None
    assert "rerun_failed_jobs" not in story.forge.calls


def test_what_fails_on_the_base_branch_too_is_not_the_prs_affair(story: Story) -> None:
    story.forge.may_rerun = False
    open_pull(story)
    story.forge.failing["main"] = frozenset({"test", "lint"})
    assert story.ci_fails(jobs=["test"]) == "the same jobs fail on main: test"
    assert story.tasks() == []
    assert story.ci_fails(501, jobs=["test", "types"]) is None
    assert [task.target_number for task in story.tasks()] == [9]


def test_a_forks_failed_run_costs_nothing_though_its_branch_has_a_name_of_ours(story: Story) -> None:
    story.forge.may_rerun = False
    assert story.ci_fails(of_repository=99) == "a run for a fork"
    assert story.tasks() == []


def test_acrouters_own_check_is_no_verdict_on_its_own_work(story: Story) -> None:
    sha = "e" * 40
    add_task(story.database, branch="acrouter/issue-1-task-1", head_sha=sha, state=TaskState.PUBLISHED)
    for app_id, slug in ((APP_ID, "acrouter"), (8, "buildkite")):
        story.tell(
            CheckSuiteCompleted(
                REPOSITORY, Sender(slug, True), app_id, app_id, slug, "success", "acrouter/issue-1-task-1", sha, NOW
            )
        )
    with story.database.session() as session:
        assert [outcome.ref for outcome in session.exec(select(Outcome)).all()] == ["suite:8"]


@pytest.mark.parametrize("branch", ["feature", "acrouter/issue-1-task-1"])
def test_what_a_lost_worker_has_just_pushed_is_known_as_its_own_once_the_next_one_says_so(
    story: Story, branch: str
) -> None:
    task_id = add_task(story.database, branch=branch, state=TaskState.QUEUED)
    with pytest.raises(NotYet):
        story.ci_fails(branch=branch)
    assert "rerun_failed_jobs" not in story.forge.calls
    with story.database.session() as session:
        changed = {"head_sha": story.forge.heads[branch], "state": TaskState.PUBLISHED}
        session.add(session.get_one(Task, task_id).sqlmodel_update(changed))
    assert story.ci_fails(branch=branch) is None
    with story.database.session() as session:
        assert [outcome.kind for outcome in session.exec(select(Outcome)).all()] == [OutcomeKind.CI_FAILED]
    assert len(story.tasks()) == 1


def test_a_closed_prs_branch_is_worked_on_as_a_branch(story: Story) -> None:
    story.forge.may_rerun = False
    open_pull(story)
    story.forge.merge("feature")
    assert story.ci_fails() is None
    assert [(task.target, task.target_number) for task in story.tasks()] == [("42/branch/feature", None)]


def test_a_failure_of_the_base_branch_itself_is_worked_on(story: Story) -> None:
    story.forge.may_rerun = False
    story.forge.failing["main"] = frozenset({"test"})
    assert story.ci_fails(branch="main") is None
    assert len(story.tasks()) == 1


def test_a_merge_queues_own_branch_is_not_worked_on(story: Story) -> None:
    """It is gone when the queue has tried: GitHub would close a PR to it, which would teach that the work was bad."""
    assert "merge queue" in (story.ci_fails(branch=f"gh-readonly-queue/main/pr-9-{'d' * 40}") or "")
    assert story.tasks() == []
    assert "rerun_failed_jobs" not in story.forge.calls


def test_failed_runs_of_one_target_meet_the_circuit_breaker(story: Story) -> None:
    story.forge.may_rerun = False
    limit = story.runtime.settings.max_tasks_per_target
    for run in range(limit + 2):
        reason = story.ci_fails(600 + run)
        if len(story.tasks()) > run:
            story.end(story.tasks()[-1])
    assert len(story.tasks()) == limit
    assert reason is not None
    assert "which is the limit" in reason
