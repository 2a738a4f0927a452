"""An issue is deleted, or transferred to another repository, while a task is at work on it."""

import json
from typing import Any

import pytest

from bot.events import parse
from store.states import TaskState
from tests.support import npm
from tests.support.story import Story

pytestmark = pytest.mark.node


def published(action: str, number: int) -> dict[str, Any]:
    """GitHub's example of the webhook, about an issue of `octo/tools`."""
    listed = json.loads(npm.webhook_examples().read_text(encoding="utf-8"))
    [bodies] = [entry["examples"] for entry in listed if entry["name"] == "issues"]
    body: dict[str, Any] = json.loads(json.dumps(next(body for body in bodies if body["action"] == action)))
    body["issue"]["number"] = number
    body["repository"] |= {"id": 42, "full_name": "octo/tools"}
    return body | {"installation": {"id": 7}, "sender": {"login": "ada", "type": "User"}}


@pytest.mark.parametrize("action", ["deleted", "transferred"])
def test_its_task_ends_before_another_model_is_paid(story: Story, action: str) -> None:
    story.label()
    story.forge.closed = {1}
    assert story.tell(parse("issues", published(action, 1))) is None
    (task,) = story.tasks()
    assert (task.state, task.reason) == (TaskState.STOPPED, f"Stopped by ada, who {action} it.")
