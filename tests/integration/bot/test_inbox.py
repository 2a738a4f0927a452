"""What becomes of a delivery that cannot be stored: the true reason is told, and told soon."""

from collections.abc import Iterator

import pytest
from sqlalchemy import Connection, event, text
from sqlalchemy.exc import OperationalError, ProgrammingError

from bot.inbox import Arrival, store_all, store_delivery
from store.database import Database

PING = Arrival("guid-1", "ping", "", b"{}")


@pytest.fixture
def own_transactions(database: Database) -> Iterator[Connection]:
    with database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        yield connection


def test_within_a_transaction_the_first_error_is_the_one_that_is_told(database: Database) -> None:
    with database.session() as session:
        session.execute(text("ALTER TABLE delivery RENAME TO gone"))
    with pytest.raises((ProgrammingError, OperationalError), match=r"no such table|does not exist"):
        store_delivery(database, "guid-1", "ping", b"{}")


def test_a_transaction_of_its_own_that_fails_is_told_in_the_same_words(
    database: Database, own_transactions: Connection
) -> None:
    own_transactions.execute(text("ALTER TABLE delivery RENAME TO gone"))
    with pytest.raises((ProgrammingError, OperationalError), match=r"no such table|does not exist"):
        store_all(own_transactions, [PING])


def test_a_busy_sqlite_is_waited_for_once(sqlite_database: Database) -> None:
    engine = sqlite_database.engine
    with (
        engine.connect() as writer,
        engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection,
    ):
        connection.execute(text("PRAGMA busy_timeout=50"))
        tries: list[str] = []
        event.listen(connection, "before_cursor_execute", lambda *arguments: tries.append(arguments[2]))
        writer.execute(text("SELECT 1"))  # it holds the write lock from its beginning
        with pytest.raises(OperationalError, match="database is locked"):
            store_all(connection, [PING])
        assert tries == [], "SQLAlchemy does not wait once more"
