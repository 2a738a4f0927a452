"""Rows that two processes write for the first time at the same moment."""

import threading
from datetime import datetime, timedelta

from sqlmodel import col, select

from store.database import Database
from store.tables import Heartbeat
from store.types import utc_now
from store.upsert import put

EARLIER = utc_now() - timedelta(hours=1)
LATER = utc_now()


def test_whoever_comes_second_changes_the_row_of_the_first(database: Database) -> None:
    second = threading.Thread(target=_beat, args=(database, "second"))
    with database.session() as session:
        put(session, Heartbeat(name="vm-1", role="first", seen_at=EARLIER), changing=("seen_at",))
        second.start()
        second.join(0.3)  # neither has ended when both have looked
    second.join(20)
    with database.session() as session:
        [row] = session.exec(select(Heartbeat)).all()
    assert (row.role, row.seen_at) == ("first", LATER), "what is not to be changed stays"


def test_a_row_that_is_only_to_be_there_is_left_as_it_is(database: Database) -> None:
    for seen_at in (EARLIER, LATER):
        with database.session() as session:
            put(session, Heartbeat(name="vm-1", role="worker", seen_at=seen_at), changing=())
    with database.session() as session:
        assert session.exec(select(Heartbeat.seen_at)).all() == [EARLIER]


def test_a_row_changes_only_where_the_condition_holds_when_it_is_met(database: Database) -> None:
    older = threading.Thread(target=_beat_unless_newer, args=(database, EARLIER))
    with database.session() as session:
        put(session, Heartbeat(name="vm-1", role="worker", seen_at=LATER), changing=("seen_at",))
        older.start()
        older.join(0.3)  # it waits for this one's end
    older.join(20)
    assert _seen(database) == [LATER], "the older one came second"
    latest = LATER + timedelta(minutes=1)
    _beat_unless_newer(database, latest)
    assert _seen(database) == [latest]


def _seen(database: Database) -> list[datetime]:
    with database.session() as session:
        return list(session.exec(select(Heartbeat.seen_at)).all())


def _beat_unless_newer(database: Database, seen_at: datetime) -> None:
    with database.session() as session:
        row = Heartbeat(name="vm-1", role="worker", seen_at=seen_at)
        put(session, row, changing=("seen_at",), where=col(Heartbeat.seen_at) <= seen_at)


def _beat(database: Database, role: str) -> None:
    with database.session() as session:
        put(session, Heartbeat(name="vm-1", role=role, seen_at=LATER), changing=("seen_at",))
