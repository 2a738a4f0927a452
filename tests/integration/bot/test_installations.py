"""Where the App may work, though webhooks of installations come in any order."""

import json
from typing import Any

import pytest

from bot.inbox import store_delivery
from store.states import TaskState
from store.tables import Installation
from tests.support.github.faults import Answer
from tests.support.world import World

pytestmark = pytest.mark.node


def told(world: World, action: str, event: str = "installation", more: Any = None, **installation: Any) -> None:
    """Let a webhook about the installation arrive."""
    payload = {
        "action": action,
        "installation": {"id": world.github.installation_id, "account": {"login": "acme"}} | installation,
        "sender": {"login": "ada", "type": "User"},
    } | (more or {})
    store_delivery(world.database, f"installation-{len(world.deliveries())}", event, json.dumps(payload).encode())
    world.settle()


def test_a_suspension_that_is_told_after_its_end_ends_with_the_next_word_of_a_repository(world: World) -> None:
    told(world, "unsuspend")
    told(world, "suspend", suspended_at="2026-01-01T00:00:00Z")
    number = world.github.open_issue("The total is wrong")
    world.github.label(number, "acrouter")
    world.settle()
    assert [task.target_number for task in world.tasks()] == [number]
    with world.database.reading() as session:
        assert not session.get_one(Installation, world.github.installation_id).suspended


def test_a_webhook_from_before_a_suspension_starts_nothing_in_it(world: World) -> None:
    told(world, "suspend", suspended_at="2026-01-01T00:00:00Z")
    suspended = {"id": world.github.installation_id, "suspended_at": "2026-01-01T00:00:00Z"}
    world.github.on("GET", r"/app/installations/\d+$", Answer(200, suspended), times=None)
    world.github.label(world.github.open_issue("The total is wrong"), "acrouter")
    world.settle()
    assert world.tasks() == []
    assert "the App is not installed in this repository" in world.reasons("issues")


@pytest.mark.parametrize("how", ["uninstalled", "repository removed"])
def test_where_the_app_is_removed_no_model_is_paid_any_more(world: World, how: str) -> None:
    world.github.label(world.github.open_issue("The total is wrong"), "acrouter")
    world.settle()
    (task,) = world.tasks()
    if how == "uninstalled":
        told(world, "deleted")
    else:
        repository = {"id": task.repository_id, "full_name": "acme/shop", "private": False}
        more = {"repositories_added": [], "repositories_removed": [repository]}
        told(world, "removed", "installation_repositories", more)
    (task,) = world.tasks()
    assert (task.state, task.reason) == (TaskState.STOPPED, "Stopped by ada, who removed the App.")


def test_another_repository_that_is_removed_ends_no_work_here(world: World) -> None:
    world.github.label(world.github.open_issue("The total is wrong"), "acrouter")
    world.settle()
    other = {"id": 999, "full_name": "acme/site", "private": False}
    told(world, "removed", "installation_repositories", {"repositories_removed": [other]})
    assert [task.state for task in world.tasks()] == [TaskState.QUEUED]
