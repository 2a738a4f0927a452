"""The Re-run button of acrouter's checks: one press is one more try."""

from dataclasses import replace

import pytest

from store.states import TaskKind, TaskState
from tests.support.forge import pull_request
from tests.support.rows import add_repository, add_task
from tests.support.story import Story


def test_the_rerun_button_of_a_tasks_check_tries_it_again(story: Story) -> None:
    story.comment("/route fix")
    [first] = story.tasks()
    story.end(first)
    assert story.rerun_check(f"acrouter-task-{first.id}", app_id=1) == "another App's check"
    assert story.rerun_check(f"acrouter-task-{first.id}", by="stranger") == "stranger has no write permission"
    assert story.rerun_check("acrouter-task-999") == "no task of this repository has this check"
    assert len(story.tasks()) == 1
    assert story.rerun_check(f"acrouter-task-{first.id}") is None
    second = story.tasks()[1]
    assert (second.kind, second.target, second.title) == (TaskKind.ISSUE, first.target, first.title)


def test_the_rerun_button_starts_no_task_of_another_repository(story: Story) -> None:
    add_repository(story.database, 43, "octo/secret")
    other = add_task(story.database, repository_id=43, target="43/issues/1", state=TaskState.NO_FIX)
    assert story.rerun_check(f"acrouter-task-{other}") == "no task of this repository has this check"
    assert [task.repository_id for task in story.tasks()] == [43]


def test_one_press_of_the_rerun_button_starts_one_task_however_often_it_is_told(story: Story) -> None:
    story.comment("/route fix")
    check = f"acrouter-task-{story.tasks()[0].id}"
    story.end(story.tasks()[0])
    for _ in range(3):
        assert story.rerun_check(check) is None
        for task in story.tasks():
            story.end(task)
    assert len(story.tasks()) == 2


def test_a_press_that_comes_again_while_its_task_is_at_work_says_nothing_more(story: Story) -> None:
    story.comment("/route fix")
    check = f"acrouter-task-{story.tasks()[0].id}"
    for _ in range(3):
        story.rerun_check(check)
    assert list(story.forge.replies[1]) == ["<!-- acrouter:press=42/rerun/5/noon -->"]


def test_the_rerun_button_can_be_pressed_again_on_the_same_check_and_on_the_new_ones(story: Story) -> None:
    story.comment("/route fix")
    [first] = story.tasks()
    presses = ((first, 5, "noon"), (first, 5, "one o'clock"), (first, 6, "one o'clock"))
    for count, (task, run_id, at) in enumerate(presses, start=2):
        story.end(story.tasks()[-1])
        story.rerun_check(f"acrouter-task-{task.id}", run_id=run_id, at=at)
        assert len(story.tasks()) == count


@pytest.mark.parametrize(("origin", "worked_on"), [("octo/tools", "e" * 40), ("stranger/tools", "d" * 40)])
def test_the_rerun_button_works_on_the_newest_commit_of_a_pr_but_a_forks(
    story: Story, origin: str, worked_on: str
) -> None:
    pull = replace(pull_request(3, "feature", "d" * 40), head_repository=origin)
    story.forge.issues[3] = pull
    story.comment("/route fix", number=3)
    [first] = story.tasks()
    story.end(first)
    story.forge.issues[3] = replace(pull, head_sha="e" * 40)
    story.rerun_check(f"acrouter-task-{first.id}")
    assert [task.base_sha for task in story.tasks()] == ["d" * 40, worked_on]


def test_the_rerun_button_of_the_configurations_check_looks_again(story: Story) -> None:
    story.forge.files["octo/tools", "b" * 40] = "test: pytest\n"
    assert story.rerun_check("acrouter-configuration") is None
    [(_, face)] = story.forge.checks.values()
    assert face.conclusion == "success"


def test_the_button_of_all_checks_tries_the_newest_task_again_and_looks_at_the_configuration(story: Story) -> None:
    story.forge.files["octo/tools", "b" * 40] = "test: pytest\n"
    for _ in range(2):
        story.comment("/route fix")
        story.end(story.tasks()[-1])
    first, second = (f"acrouter-task-{task.id}" for task in story.tasks())
    everything = ("acrouter-configuration", first, second)
    assert story.rerun_all_checks(*everything, app_id=1) == "another App's checks"
    assert story.rerun_all_checks(*everything, by="stranger", at="y") is not None
    assert len(story.tasks()) == 2
    for _ in range(2):  # the webhook comes again
        assert story.rerun_all_checks(*everything) is None
    assert len(story.tasks()) == 3
    assert [face.name for _, face in story.forge.checks.values()] == ["acrouter configuration"] * 2


def test_the_button_of_all_checks_where_none_is_ours_does_nothing(story: Story) -> None:
    assert story.rerun_all_checks() == "no task of this repository has a check there"
