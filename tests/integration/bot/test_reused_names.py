"""A repository gets another name, and another repository gets that: what is remembered stays with the first one."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from bot.repositories import know_repository
from routing import Dimension, Evidence, RoutingTask
from routing.evidence_store import save
from tests.support.rows import add_task
from tests.support.story import REPOSITORY, Story

TEXT = "The total of the cart leaves the first price out, though it is in the list."


@pytest.fixture
def remembering(story: Story) -> Story:
    """An attempt on a task in `octo/tools`, whose issue's title is for its people alone."""
    evidence = Evidence(
        key="attempt:1",
        task_key=f"task:{add_task(story.database)}",
        dimension=Dimension.BUG_FIXING,
        model="small",
        score=1.0,
        cost_usd=0.1,
        final=True,
        at=datetime(2026, 1, 1, tzinfo=UTC),
        text=TEXT,
        repository=REPOSITORY.full_name,
        title="Our customer's key is in the log",
    )
    with story.database.session() as session:
        save(session, evidence, story.runtime.brain.router.encoder)
    assert of(story) == [REPOSITORY.full_name]
    return story


def of(story: Story) -> list[str]:
    """The repositories of what a task with the same text resembles, as a worker that runs already sees them."""
    task = RoutingTask(key="task:99", text=TEXT, dimension=Dimension.BUG_FIXING, repository=REPOSITORY.full_name)
    return [near.repository for near in story.runtime.brain.choose(task).neighbours]


def test_a_new_repository_of_the_old_name_is_told_nothing_of_the_first_ones_issues(remembering: Story) -> None:
    forge = remembering.runtime.forge
    know_repository(remembering.database, forge, replace(REPOSITORY, id=43))
    (name,) = of(remembering)
    assert name != REPOSITORY.full_name
    know_repository(remembering.database, forge, replace(REPOSITORY, id=43))
    assert of(remembering) == [name]
    know_repository(remembering.database, forge, replace(REPOSITORY, full_name="octo/trowels"))
    assert of(remembering) == ["octo/trowels"], "its new name is told at last"


def test_what_is_remembered_goes_with_the_repository(remembering: Story) -> None:
    know_repository(remembering.database, remembering.runtime.forge, replace(REPOSITORY, full_name="octo/trowels"))
    assert of(remembering) == ["octo/trowels"]
    know_repository(remembering.database, remembering.runtime.forge, replace(REPOSITORY, id=43))
    assert of(remembering) == ["octo/trowels"]
