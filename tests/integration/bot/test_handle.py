"""A delivery is handled once, whatever happens on the way."""

import json
import threading
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from bot import handle
from bot.handle import MAX_TRIES, make_handler
from store.database import Database
from store.states import DeliveryState
from store.tables import Delivery, Installation, Repository
from store.types import utc_now
from tests.support.rows import QueueOfNames, settings
from tests.support.services import wait_until
from workers.errors import ForgeTemporary

FACT = {"id": 42, "full_name": "octo/tools", "default_branch": "main", "private": False}


@pytest.fixture
def handler(database: Database) -> Any:
    runtime: Any = SimpleNamespace(settings=settings(), database=database, queue=QueueOfNames(), forge=object())
    return make_handler(runtime)


def deliver(database: Database, event: str, payload: dict[str, Any], guid: str = "g") -> int:
    row = Delivery(guid=guid, event=event, payload=json.dumps(payload).encode())
    with database.session() as session:
        session.add(row)
    assert row.id is not None
    return row.id


def delivery(database: Database, delivery_id: int) -> Delivery:
    with database.session() as session:
        return session.get_one(Delivery, delivery_id)


def wait_no_longer(database: Database, delivery_id: int) -> None:
    with database.session() as session:
        row = session.get_one(Delivery, delivery_id)
        row.not_before = None
        session.add(row)


def ping() -> dict[str, Any]:
    return {"zen": "Design for failure."}


def test_a_delivery_is_marked_handled(handler: Any, database: Database) -> None:
    number = deliver(database, "ping", ping())
    handler(number)
    row = delivery(database, number)
    assert row.state is DeliveryState.HANDLED
    assert row.handled_at is not None
    assert row.tries == 1


def test_an_event_without_use_is_ignored_with_a_reason(handler: Any, database: Database) -> None:
    number = deliver(database, "star", {"action": "created"})
    handler(number)
    row = delivery(database, number)
    assert (row.state, row.reason) == (DeliveryState.IGNORED, "acrouter has no use for 'star' events")


def test_a_malformed_payload_fails_with_the_field(handler: Any, database: Database) -> None:
    number = deliver(database, "issues", {"action": "labeled"})
    handler(number)
    row = delivery(database, number)
    assert (row.state, row.reason) == (DeliveryState.FAILED, "issues: issue: is missing.")


def test_a_second_call_does_nothing(handler: Any, database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    monkeypatch.setattr(handle, "dispatch", lambda _runtime, guid, _event: calls.append(guid))
    number = deliver(database, "ping", ping())
    for _ in range(3):
        handler(number)
    assert calls == ["g"]


def test_two_processes_at_once_handle_it_once(
    handler: Any, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside, go_on = threading.Event(), threading.Event()
    calls: list[str] = []

    def slow(_runtime: object, guid: str, _event: object) -> None:
        calls.append(guid)
        inside.set()
        assert go_on.wait(10)

    monkeypatch.setattr(handle, "dispatch", slow)
    number = deliver(database, "ping", ping())
    first = threading.Thread(target=handler, args=(number,))
    first.start()
    assert inside.wait(10)
    handler(number)
    go_on.set()
    first.join(10)
    assert calls == ["g"]
    assert delivery(database, number).state is DeliveryState.HANDLED


def test_a_handler_that_github_keeps_waiting_is_left_to_it_however_long_that_takes(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue, changed = QueueOfNames(), settings().model_copy(update={"lease_s": 1.5})
    runtime: Any = SimpleNamespace(settings=changed, database=database, queue=queue, forge=object())
    inside, go_on = threading.Event(), threading.Event()
    calls: list[str] = []

    def slow(_runtime: object, guid: str, _event: object) -> None:
        calls.append(guid)
        inside.set()
        assert go_on.wait(10)

    monkeypatch.setattr(handle, "dispatch", slow)
    number = deliver(database, "ping", ping())
    handler = make_handler(runtime)
    first = threading.Thread(target=handler, args=(number,))
    first.start()
    assert inside.wait(10)
    until = delivery(database, number).not_before
    assert until is not None
    wait_until(lambda: (delivery(database, number).not_before or until) > until, what="a longer claim")
    handler(number)
    go_on.set()
    first.join(10)
    assert calls == ["g"]
    row = delivery(database, number)
    assert (row.state, row.tries, row.not_before) == (DeliveryState.HANDLED, 1, None)


def test_a_crash_leaves_it_for_later_and_the_fifth_gives_it_up(
    handler: Any, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(*_: object) -> None:
        raise RuntimeError("with ghs_" + "a" * 36)

    monkeypatch.setattr(handle, "dispatch", crash)
    number = deliver(database, "ping", ping())
    for tries in range(1, MAX_TRIES):
        handler(number)
        row = delivery(database, number)
        assert (row.state, row.tries) == (DeliveryState.RECEIVED, tries)
        assert row.not_before is not None
        wait_no_longer(database, number)
    handler(number)
    row = delivery(database, number)
    assert row.state is DeliveryState.FAILED
    assert "RuntimeError" in row.reason
    assert "ghs_a" not in row.reason


def test_a_handler_that_is_killed_each_time_is_given_up(handler: Any, database: Database) -> None:
    number = deliver(database, "ping", ping())
    with database.session() as session:
        row = session.get_one(Delivery, number)
        row.tries = MAX_TRIES
        session.add(row)
    handler(number)
    assert delivery(database, number).state is DeliveryState.FAILED


def test_github_being_away_costs_no_try_and_is_waited_for(
    handler: Any, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = utc_now() + timedelta(minutes=30)

    def limited(*_: object) -> None:
        raise ForgeTemporary("rate limit", later)

    monkeypatch.setattr(handle, "dispatch", limited)
    number = deliver(database, "ping", ping())
    handler(number)
    row = delivery(database, number)
    assert (row.state, row.tries, row.not_before) == (DeliveryState.RECEIVED, 0, later)


def test_an_unknown_delivery_is_no_error(handler: Any) -> None:
    handler(987_654)


def installation(action: str, **changes: Any) -> dict[str, Any]:
    return {
        "action": action,
        "installation": {"id": 7, "account": {"login": "octo"}},
        "repositories": [{key: FACT[key] for key in ("id", "full_name", "private")}],
    } | changes


def test_installing_and_removing_the_app_is_written_down(handler: Any, database: Database) -> None:
    handler(deliver(database, "installation", installation("created"), "a"))
    with database.session() as session:
        assert session.get_one(Repository, 42).active
        assert session.get_one(Installation, 7).account == "octo"
    handler(deliver(database, "installation", installation("deleted"), "b"))
    # The first one again, late: a removed installation does not come back.
    handler(deliver(database, "installation", installation("created"), "c"))
    with database.session() as session:
        assert session.get_one(Installation, 7).removed
        assert not session.get_one(Repository, 42).active


def test_a_repository_that_is_added_removed_and_renamed_is_followed(handler: Any, database: Database) -> None:
    short = {key: FACT[key] for key in ("id", "full_name", "private")}
    base: dict[str, Any] = {"installation": {"id": 7, "account": {"login": "octo"}}}
    added = base | {"action": "added", "repositories_added": [short], "repositories_removed": []}
    handler(deliver(database, "installation_repositories", added, "a"))
    push = base | {
        "repository": FACT | {"full_name": "octo/renamed", "pushed_at": 1_700_000_000},
        "sender": {"login": "ada", "type": "User"},
        "ref": "refs/heads/main",
        "before": "0" * 40,
        "after": "1" * 40,
        "commits": [],
    }
    handler(deliver(database, "push", push, "b"))
    with database.session() as session:
        row = session.get_one(Repository, 42)
        assert (row.full_name, row.default_branch, row.active) == ("octo/renamed", "main", True)
    gone = base | {"action": "removed", "repositories_added": [], "repositories_removed": [short]}
    handler(deliver(database, "installation_repositories", gone, "c"))
    with database.session() as session:
        assert not session.get_one(Repository, 42).active


def test_an_event_without_an_installation_does_nothing(handler: Any, database: Database) -> None:
    payload = {
        "action": "labeled",
        "repository": FACT,
        "sender": {"login": "ada", "type": "User"},
        "issue": {"number": 1, "title": "t", "body": None, "state": "open"},
        "label": {"name": "acrouter"},
    }
    number = deliver(database, "issues", payload)
    handler(number)
    row = delivery(database, number)
    assert (row.state, row.reason) == (DeliveryState.IGNORED, "the App is not installed in this repository")
