"""All payloads that GitHub has published, through the whole handler: each handled, or ignored with a reason."""

import json
from collections import Counter
from dataclasses import replace
from typing import Any, cast

import pytest
from sqlmodel import select

from bot.handle import make_handler
from store.database import Database
from store.states import DeliveryState
from store.tables import Delivery, Outcome, Task
from tests.support import npm
from tests.support.story import Story
from workers.errors import TargetGone
from workers.ports import Forge

pytestmark = pytest.mark.node


class NothingThere:
    """A forge in which everybody may write and whatever an event tells of is gone by now."""

    def permission(self, *_: object) -> str:
        return "admin"

    def file_text(self, *_: object) -> str:
        return "on_ci_failure: true\n"

    def login(self) -> str:
        return "acrouter[bot]"

    def __getattr__(self, name: str) -> Any:
        def gone(*_: object, **__: object) -> None:
            raise TargetGone(f"{name}: it is gone")

        return gone


def payloads() -> list[tuple[str, dict[str, Any]]]:
    listed = json.loads(npm.webhook_examples().read_text(encoding="utf-8"))
    found = [(entry["name"], example) for entry in listed for example in entry["examples"]]
    # Many lack their installation, without which nothing would be looked at.
    return [(name, {"installation": {"id": 7}} | body) for name, body in found]


def told(database: Database) -> tuple[int, int]:
    with database.session() as session:
        return len(session.exec(select(Task.id)).all()), len(session.exec(select(Outcome.id)).all())


def test_every_published_payload_is_handled_or_ignored_and_a_second_hook_changes_nothing(
    sqlite_database: Database,
) -> None:
    story = Story(sqlite_database)
    handle = make_handler(replace(story.runtime, forge=cast("Forge", NothingThere())))
    rounds = []
    for number in range(2):
        for index, (event, body) in enumerate(payloads()):
            row = Delivery(guid=f"{number}-{index}", event=event, payload=json.dumps(body).encode())
            with sqlite_database.session() as session:
                session.add(row)
            assert row.id is not None
            handle(row.id)
        rounds.append(told(sqlite_database))
    assert rounds[0] == rounds[1]
    with sqlite_database.session() as session:
        rows = session.exec(select(Delivery)).all()
    odd = [(row.event, row.action, row.reason) for row in rows if row.state is DeliveryState.FAILED]
    assert odd == []
    assert all(row.reason for row in rows if row.state is DeliveryState.IGNORED)
    assert len(rows) == 2 * 329
    handled = Counter(row.event for row in rows if row.state is DeliveryState.HANDLED)
    assert handled.keys() >= {"ping", "installation", "installation_repositories"}
