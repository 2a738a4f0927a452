"""What becomes of a delivery that cannot be stored: the true reason is told, and told soon."""

from collections.abc import Iterator

import pytest
from sqlalchemy import Connection, LargeBinary, cast, event, literal, text, update
from sqlalchemy.exc import OperationalError, ProgrammingError
from sqlmodel import select

from bot.inbox import Arrival, arrival, store_all, store_delivery
from store.database import Database
from store.tables import Delivery

PING = arrival("guid-1", "ping", b"{}")


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


def test_each_delivery_of_a_batch_gets_the_id_of_its_row_or_none_where_it_is_known(
    database: Database, own_transactions: Connection
) -> None:
    assert store_all(own_transactions, [ping("b"), ping("a")]) == [1, 2], "they are stored as they came"
    told = store_all(own_transactions, [ping("c"), ping("a"), ping("d"), ping("c"), ping("b")])
    assert told[1] is told[4] is None, "known before"
    assert told[3] is None, "known within the batch"
    with database.session() as session:
        stored = dict(session.exec(select(Delivery.guid, Delivery.id)).all())
    assert (stored["c"], stored["d"]) == (told[0], told[2])
    assert store_all(own_transactions, [ping("a"), ping("d")]) == [None, None]


def test_a_body_is_packed_and_read_as_it_came_as_are_those_from_before(database: Database) -> None:
    body = b'{"action": "opened"}' + b" " * 9_000
    store_delivery(database, "packed", "issues", body)
    with database.engine.begin() as connection:
        [size] = connection.exec_driver_sql("SELECT length(payload) FROM delivery").one()
        assert size < 200
    with database.session() as session:
        assert session.exec(select(Delivery.payload)).one() == body
        session.execute(update(Delivery).values(payload=cast(literal(body, LargeBinary), LargeBinary)))
        assert session.execute(text("SELECT length(payload) FROM delivery")).scalar_one() == len(body)
        session.expire_all()
        assert session.exec(select(Delivery.payload)).one() == body


def ping(guid: str) -> Arrival:
    return arrival(guid, "ping", b"{}")
