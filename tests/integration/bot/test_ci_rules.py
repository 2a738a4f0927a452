"""Which failed runs cost money: not a flake's first attempt, not the base branch's own failures."""

import pytest

from store.database import Database
from store.states import TaskKind
from tests.support.story import Story
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


def test_a_failure_of_the_base_branch_itself_is_worked_on(story: Story) -> None:
    story.forge.may_rerun = False
    story.forge.failing["main"] = frozenset({"test"})
    assert story.ci_fails(branch="main") is None
    assert len(story.tasks()) == 1


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
