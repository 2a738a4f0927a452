"""The default branch gets another name (`main`, `trunk`) while a task on it is on its way."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlmodel import select

from bot.demo.hub.server import LocalHub
from store.states import TaskState
from store.tables import Task
from tests.support.renamed import meanwhile, rename_default_branch
from tests.support.run_stories import ISSUE, Story
from tests.support.whole_run import WholeRun


def _let_main_fail(hub: LocalHub) -> int:
    hub.fail_ci(hub.branches()["main"], "main")
    return 0


MAIN_FAILS = Story("a failed run of the default branch", "on_ci_failure: true\n", _let_main_fail)


@pytest.fixture(params=[ISSUE, MAIN_FAILS], ids=["issue", "ci"])
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[WholeRun]:
    made = WholeRun(tmp_path, request.param, git="path")
    with made.connected():
        made.story.begin(made.hub)
        made.hear()
        made.hear()  # a failed run runs once more first
        yield made
    made.close()


def assert_the_pr_goes_to_trunk(run: WholeRun) -> None:
    with run.database.reading() as session:
        (task,) = session.exec(select(Task)).all()
    assert task.state is TaskState.PUBLISHED, task.reason
    assert [pull["base"]["ref"] for pull in run.hub.pull_requests()] == ["trunk"]


def test_while_its_task_waits_in_the_queue(run: WholeRun) -> None:
    rename_default_branch(run, "trunk")
    run.settle()
    assert_the_pr_goes_to_trunk(run)


def test_while_the_model_works(run: WholeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    meanwhile(monkeypatch, lambda: rename_default_branch(run, "trunk"))
    run.settle()
    assert_the_pr_goes_to_trunk(run)
