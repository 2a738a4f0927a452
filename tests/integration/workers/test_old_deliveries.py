"""Webhooks that were handled long ago are forgotten, and nothing else is."""

from datetime import timedelta

import pytest
from sqlmodel import col, select, update

from store.database import Database
from store.states import DeliveryState
from store.tables import Delivery, Sweep
from store.types import utc_now
from tests.support.forge import MemoryForge, make_runtime
from tests.support.rows import settings
from workers import old_deliveries
from workers.old_deliveries import forget_old_deliveries
from workers.runtime import Runtime

LONG_AGO = timedelta(days=31)


@pytest.fixture
def runtime(database: Database) -> Runtime:
    return make_runtime(database, settings(), MemoryForge())


def receive(runtime: Runtime, guid: str, state: DeliveryState, ago: timedelta = LONG_AGO) -> None:
    with runtime.database.session() as session:
        session.add(Delivery(guid=guid, event="push", payload=b"{}", state=state, received_at=utc_now() - ago))


def kept(runtime: Runtime) -> list[str]:
    with runtime.database.reading() as session:
        return sorted(session.exec(select(Delivery.guid)).all())


def an_hour_passes(runtime: Runtime) -> None:
    with runtime.database.session() as session:
        session.execute(update(Sweep).values(due_at=utc_now() - timedelta(seconds=1)).where(col(Sweep.name) != ""))


def test_what_was_handled_long_ago_goes_and_what_waits_or_is_young_stays(runtime: Runtime) -> None:
    for state in DeliveryState:
        receive(runtime, f"old-{state}", state)
        receive(runtime, f"young-{state}", state, timedelta(days=29))
    assert forget_old_deliveries(runtime) == 3
    assert kept(runtime) == ["old-received", "young-failed", "young-handled", "young-ignored", "young-received"]


def test_an_installation_says_how_long_they_are_kept(database: Database) -> None:
    runtime = make_runtime(database, settings(delivery_days=5), MemoryForge())
    receive(runtime, "older", DeliveryState.HANDLED, timedelta(days=6))
    receive(runtime, "younger", DeliveryState.HANDLED, timedelta(days=4))
    forget_old_deliveries(runtime)
    assert kept(runtime) == ["younger"]


def test_one_process_an_hour_looks_for_them(runtime: Runtime) -> None:
    assert forget_old_deliveries(runtime) == 0
    receive(runtime, "old", DeliveryState.IGNORED)
    assert forget_old_deliveries(runtime) == 0
    an_hour_passes(runtime)
    assert forget_old_deliveries(runtime) == 1
    assert kept(runtime) == []


def test_many_go_in_parts_and_what_is_left_when_time_is_up_goes_an_hour_later(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(old_deliveries, "_BATCH", 2)
    for number in range(5):
        receive(runtime, f"old-{number}", DeliveryState.HANDLED, LONG_AGO + timedelta(minutes=number))
    assert forget_old_deliveries(runtime) == 5

    for number in range(5):
        receive(runtime, f"old-{number}", DeliveryState.HANDLED, LONG_AGO + timedelta(minutes=number))
    an_hour_passes(runtime)
    monkeypatch.setattr(old_deliveries, "_WITHIN_S", 0.0)
    assert forget_old_deliveries(runtime) == 2
    assert kept(runtime) == ["old-0", "old-1", "old-2"], "the oldest go first"
