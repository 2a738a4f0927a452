"""`/route retry` on acrouter's own PR begins the work behind it anew; what is said there then is about that."""

import pytest

from bot.events import PullRequestClosed, Sender
from store.states import TaskState
from store.tables import Task
from tests.support.rows import add_task
from tests.support.story import NOW, REPOSITORY, Story

ISSUE, PULL = 1, 2


@pytest.fixture
def retried(story: Story) -> Story:
    """The issue's task has opened a PR, and somebody said `/route retry` there."""
    add_task(story.database, target_number=ISSUE, pr_number=PULL, state=TaskState.PUBLISHED)
    assert story.comment("/route retry", number=PULL) is None
    return story


def newest(story: Story) -> Task:
    return story.tasks()[-1]


def test_a_stop_there_ends_the_new_try(retried: Story) -> None:
    assert retried.comment("/route stop", number=PULL) is None
    assert [task.state for task in retried.tasks()] == [TaskState.PUBLISHED, TaskState.STOPPED]
    assert retried.comment("/route stop", number=PULL) == "it is stopped already"


def test_the_status_there_is_the_new_trys(retried: Story) -> None:
    retried.comment("/route status", number=PULL)
    assert "Waiting for a worker" in retried.words(PULL)


def test_a_stop_of_before_the_retry_that_comes_late_does_not_end_it(retried: Story) -> None:
    assert retried.comment("/route stop", number=PULL, comment_id=1) == "the task here was asked for later"
    assert newest(retried).state is TaskState.QUEUED


def test_closing_the_pr_does_not_end_the_new_try(retried: Story) -> None:
    person = Sender("maintainer", is_bot=False)
    retried.tell(
        PullRequestClosed(
            *(REPOSITORY, person, Sender("acrouter[bot]", is_bot=True), PULL, "A fix", "", False, ""),
            *("acrouter/issue-1-task-1", "d" * 40, REPOSITORY.id, NOW),
        )
    )
    assert newest(retried).state is TaskState.QUEUED


def test_a_new_try_with_a_pr_of_its_own_is_told_of_there(retried: Story) -> None:
    with retried.database.session() as session:
        changed = {"state": TaskState.PUBLISHED, "pr_number": 3}
        session.add(session.get_one(Task, newest(retried).id).sqlmodel_update(changed))
    retried.comment("/route stop", number=PULL)
    assert "Nothing is at work here" in retried.words(PULL)


@pytest.mark.parametrize(
    ("of_issue", "of_pull", "expected"),
    [
        (("dimension:bug_fixing",), (), "bug_fixing"),
        (("dimension:bug_fixing",), ("dimension:algorithm",), "algorithm"),
        ((), (), ""),
    ],
)
def test_what_kind_of_task_it_is_by_a_label_holds_for_the_new_try(
    story: Story, of_issue: tuple[str, ...], of_pull: tuple[str, ...], expected: str
) -> None:
    first = add_task(story.database, target_number=ISSUE, pr_number=PULL, state=TaskState.PUBLISHED)
    story.forge.issue_labels[ISSUE] = of_issue
    story.comment("/route retry", number=PULL, labels=of_pull)
    assert newest(story).dimension == expected
    story.end(newest(story))
    story.rerun_check(f"acrouter-task-{first}")
    assert newest(story).dimension == (of_issue[0].partition(":")[2] if of_issue else "")
