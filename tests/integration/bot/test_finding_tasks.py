"""What an event tells of is found by an index, however many tasks a repository has had."""

from collections.abc import Callable

import pytest
from sqlalchemy import event

from bot.handlers.context import Context
from bot.handlers.tasks import tasks_of_branch
from store.states import TaskState
from tests.support.rows import add_task
from tests.support.story import REPOSITORY, Story
from workers.control import latest_task
from workers.outcomes import tasks_of_pull_request
from workers.ports import BranchHead, RepositoryRef


def of_an_issue_or_pr(story: Story) -> None:
    latest_task(story.database, 42, 1)


def of_a_branch(story: Story) -> None:
    repository = RepositoryRef(42, 7, REPOSITORY.full_name)
    tasks_of_branch(Context(story.runtime, story.forge, repository, "guid"), "acrouter/one")  # type: ignore[arg-type]


def of_a_closed_pr(story: Story) -> None:
    tasks_of_pull_request(story.database, 42, 1, head=BranchHead("acrouter/one", "d" * 40))


def of_a_failed_run(story: Story) -> None:
    story.configure("on_ci_failure: true\n")
    story.ci_fails()


@pytest.mark.parametrize("look", [of_an_issue_or_pr, of_a_branch, of_a_closed_pr, of_a_failed_run])
def test_no_look_goes_through_all_tasks_of_a_repository(story: Story, look: Callable[[Story], None]) -> None:
    asked: list[tuple[str, object]] = []
    engine = story.database.engine
    event.listen(engine, "before_cursor_execute", lambda _c, _cursor, text, values, *_: asked.append((text, values)))
    look(story)
    with story.database.reading() as session:
        plans = [
            line.detail
            for text, values in list(asked)
            if text.startswith("SELECT") and "FROM task" in text
            for line in session.connection().exec_driver_sql(f"EXPLAIN QUERY PLAN {text}", values)  # type: ignore[arg-type]
        ]
    searches = [plan for plan in plans if " task" in plan]
    assert searches
    assert not [plan for plan in searches if "SCAN" in plan or "(repository_id=?)" in plan]


def test_the_newest_task_of_a_target_is_found_by_its_number_and_by_its_prs(story: Story) -> None:
    of_issue = add_task(story.database, target_number=1, state=TaskState.PUBLISHED, pr_number=2)
    of_pr = add_task(story.database, target="42/pull/2", target_number=2, state=TaskState.NO_FIX)
    assert [getattr(latest_task(story.database, 42, number), "id", None) for number in (1, 2, 3)] == [
        of_issue,
        of_pr,
        None,
    ]
    assert latest_task(story.database, 43, 1) is None
