"""A repository gets another name while a task is on its way, and no webhook has told of it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlmodel import select

from store.states import TaskState
from store.tables import Task
from tests.support.renamed import meanwhile, rename
from tests.support.run_stories import CI_FAILURE, ISSUE, PULL_REQUEST, Story
from tests.support.whole_run import REPOSITORY, WholeRun


@pytest.fixture(params=[ISSUE, PULL_REQUEST, CI_FAILURE], ids=["issue", "pr", "ci"])
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[WholeRun]:
    story: Story = request.param
    made = WholeRun(tmp_path, story, git="path")
    with made.connected():
        yield made
    made.close()


def newest(run: WholeRun) -> Task:
    with run.database.reading() as session:
        return session.exec(select(Task).order_by(Task.id.desc())).first()  # type: ignore[union-attr, return-value]


def assert_it_was_handed_in(run: WholeRun, number: int) -> None:
    task = newest(run)
    assert task.state is TaskState.PUBLISHED, task.reason
    assert task.pr_number in [pull["number"] for pull in run.hub.pull_requests()]
    assert run.hub.branches()[task.branch] == task.head_sha
    assert "acrouter:task=" in "".join(comment["body"] for comment in run.hub.comments(number))


def test_while_its_task_waits_in_the_queue(run: WholeRun) -> None:
    number = run.story.begin(run.hub)
    run.hear()
    rename(run, "store")
    run.settle()
    assert_it_was_handed_in(run, number)


def test_while_the_model_works(run: WholeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    number = run.story.begin(run.hub)
    run.hear()
    meanwhile(monkeypatch, lambda: rename(run, "store"))
    run.settle()
    assert_it_was_handed_in(run, number)


def test_a_new_repository_of_the_old_name_gets_none_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = WholeRun(tmp_path, ISSUE, git="path")
    with run.connected():
        number = run.story.begin(run.hub)
        run.hear()
        old = run.hub._repository("")

        def taken() -> None:
            rename(run, "store")
            (Path(run.hub._folder.name) / f"{REPOSITORY}.git").unlink()
            run.hub.create_repository(REPOSITORY, old.bare.path)

        meanwhile(monkeypatch, taken)
        run.settle()
        task = newest(run)
        assert task.state is TaskState.PUBLISHED, task.reason
        assert [pull["number"] for pull in run.hub.pull_requests(repository="acme/store")] == [task.pr_number]
        assert run.hub.pull_requests(repository=REPOSITORY) == []
        assert list(run.hub.branches(repository=REPOSITORY)) == ["main"]
        assert run.hub.comments(number, repository="acme/store")
    run.close()
