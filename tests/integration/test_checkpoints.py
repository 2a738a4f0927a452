"""SQLite's checkpoints are done by a thread of their own, and a commit does none before the log is large."""

from pathlib import Path

import pytest
from sqlmodel import select

from bot.inbox import Arrival, store_all
from store import checkpoints as module
from store.checkpoints import LEAVE_CHECKPOINTS_TO_OTHERS, Checkpoints
from store.database import Database
from store.tables import Delivery
from tests.support.services import wait_until

BODY = b"{" + b" " * 250_000 + b"}"


def moved(database: Database) -> int:
    """Bytes of the database itself, its log aside."""
    return Path(database.engine.url.database or "").stat().st_size


def test_the_log_is_moved_into_the_database_once_it_has_grown(sqlite_database: Database) -> None:
    checkpoints = Checkpoints(sqlite_database)
    checkpoints.start()
    before = moved(sqlite_database)
    with sqlite_database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.detach()
        connection.execute(LEAVE_CHECKPOINTS_TO_OTHERS)
        for number in range(20):
            store_all(connection, [Arrival(f"guid-{number}", "ping", "", BODY)])
        assert moved(sqlite_database) == before, "the commits moved nothing"
        checkpoints.written([len(BODY)] * 20)
        wait_until(lambda: moved(sqlite_database) > before + 19 * len(BODY), what="the checkpoint")
    checkpoints.close()


def test_a_long_log_is_begun_anew_while_somebody_goes_on_writing(
    sqlite_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_LONG_PAGES", 10)
    checkpoints = Checkpoints(sqlite_database)
    checkpoints.start()
    with sqlite_database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.detach()
        connection.execute(LEAVE_CHECKPOINTS_TO_OTHERS)

        for number in range(20):
            with sqlite_database.reading() as reader:  # while it looks on, no checkpoint reaches the log's end
                reader.exec(select(Delivery.id)).first()
                store_all(connection, [Arrival(f"guid-{number}", "ping", "", BODY)])
                checkpoints.written([len(BODY)] * 20)
                wait_until(lambda: checkpoints._rest_due, what="the checkpoint")
            checkpoints.move_the_rest(connection)
        assert log_of(sqlite_database) < 3 * len(BODY)
    checkpoints.close()


def log_of(database: Database) -> int:
    """Bytes of the log, which never shrinks."""
    return Path(f"{database.engine.url.database}-wal").stat().st_size
