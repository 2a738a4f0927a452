"""The inbox: deliveries are stored before they are acknowledged, each guid once."""

import json
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import msgspec
from sqlalchemy import Connection, Dialect
from sqlalchemy.exc import OperationalError

from bot.errors import PayloadError
from bot.payload import clean
from store.database import Database
from store.states import DeliveryState
from store.tables import Delivery
from store.types import pack, utc_now

_LONGEST_NAME = 100


@dataclass(frozen=True)
class Arrival:
    """A delivery that is not stored yet."""

    guid: str
    event: str
    action: str
    packed: bytes
    """The body, as `PackedJson` stores it."""


def decode(body: bytes) -> dict[str, Any]:
    """Return the JSON object that a body holds.

    Raises:
        PayloadError: it is no JSON, no object, or nested without end.
    """
    try:
        payload = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        payload = _decode_leniently(body)
    if not isinstance(payload, dict):
        raise PayloadError("The body is not a JSON object.")
    return payload


def _decode_leniently(body: bytes) -> Any:
    """The slow way takes what the fast one refuses: half a surrogate pair, as texts of people's have it."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise PayloadError(
            "The body is not JSON. Set the App's webhook to the content type application/json."
        ) from error


def arrival(guid: str, event: str, body: bytes) -> Arrival:
    """Look at a delivery as far as it takes to store it.

    Raises:
        PayloadError: the body is not a JSON object.
    """
    try:
        body.decode()  # the fast way does not look into the texts that it passes over
        action = _FIRST_LOOK.decode(body).action
    except (UnicodeDecodeError, msgspec.DecodeError, RecursionError):
        action = decode(body).get("action")
    return Arrival(guid, event, clean(action)[:_LONGEST_NAME] if isinstance(action, str) else "", pack(body))


class _Seen(msgspec.Struct):
    action: Any = None


_FIRST_LOOK = msgspec.json.Decoder(_Seen)
"""Passes over the whole body, and makes no objects of what is not needed yet."""


def store_delivery(database: Database, guid: str, event: str, body: bytes) -> int | None:
    """Store a delivery and return its id, or None where this guid is known.

    Raises:
        PayloadError: the body is not a JSON object.
    """
    found = arrival(guid, event, body)
    with database.engine.begin() as connection:
        return store_all(connection, [found])[0]


def store_all(connection: Connection, arrivals: Sequence[Arrival]) -> list[int | None]:
    """Store deliveries by one statement, all or none; returns the id of each, or None where its guid is known."""
    now = _moment(connection)
    rows = first_of_each(arrivals)
    values = tuple(value for one in rows for value in (one.guid, one.event, one.action, one.packed, now))
    return ids_of_each(arrivals, _executed(connection, [one.guid for one in rows], values))


def first_of_each(arrivals: Sequence[Arrival]) -> list[Arrival]:
    """Return what a statement may insert: of each guid the first."""
    rows: dict[str, Arrival] = {}
    for one in arrivals:
        rows.setdefault(one.guid, one)
    return list(rows.values())


def ids_of_each(arrivals: Sequence[Arrival], ids: dict[str, int]) -> list[int | None]:
    """Return the id of each arrival's row, or None where its guid was known before it. Takes `ids` apart."""
    return [ids.pop(one.guid, None) for one in arrivals]


def _executed(connection: Connection, guids: Sequence[str], values: Sequence[Any]) -> dict[str, int]:
    """Insert into SQLite over the driver alone, which takes half of the time, where that is a transaction of its own.

    What fails is run once more by SQLAlchemy, for its errors; each guid is stored once. Within a transaction the second
    run could only say that the first has failed.
    """
    dbapi = connection.dialect.dbapi
    assert dbapi is not None
    statement = _insert(connection.dialect.paramstyle, len(guids))
    own = connection.get_execution_options().get("isolation_level") == "AUTOCOMMIT"
    if not own or connection.dialect.name != "sqlite":
        return dict(connection.exec_driver_sql(f"{statement} {_RETURNING}", tuple(values)).all())
    try:
        cursor: Any = connection.connection.cursor()
        try:
            return _inserted_in_one_step(cursor, statement, guids, values)
        finally:
            cursor.close()
    except dbapi.Error as error:
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_BUSY:  # that was waited for as long as it may be
            raise OperationalError("INSERT INTO delivery", None, error) from error
        return dict(connection.exec_driver_sql(f"{statement} {_RETURNING}", tuple(values)).all())


def _inserted_in_one_step(
    cursor: sqlite3.Cursor, statement: str, guids: Sequence[str], values: Sequence[Any]
) -> dict[str, int]:
    """Insert into SQLite, whose driver would give up the interpreter and wait for it again for each row returned.

    The rows of one statement get the next ids, in their order; no other writer comes between.
    """
    cursor.execute(statement, values)
    if cursor.rowcount == len(guids):
        first = (cursor.lastrowid or 0) - len(guids) + 1
        return {guid: first + place for place, guid in enumerate(guids)}
    # Some were known: those that were not have the highest ids.
    places = ", ".join("?" * len(guids))
    query = f"SELECT guid, id FROM delivery WHERE guid IN ({places}) ORDER BY id DESC LIMIT ?"  # noqa: S608
    return dict(cursor.execute(query, (*guids, cursor.rowcount)).fetchall())


_RETURNING = "RETURNING guid, id"


@cache
def _insert(paramstyle: str, rows: int) -> str:
    """The driver's own SQL: this runs for every webhook, and building a statement costs more than running it."""
    place = "?" if paramstyle == "qmark" else "%s"
    row = f"({', '.join([place] * 5)}, '{DeliveryState.RECEIVED.value}', '', 0)"
    return (
        "INSERT INTO delivery (guid, event, action, payload, received_at, state, reason, tries) "  # noqa: S608
        f"VALUES {', '.join([row] * rows)} ON CONFLICT (guid) DO NOTHING"
    )


def _moment(connection: Connection) -> Any:
    """Return the present moment as the column's type hands it to the driver."""
    bind = _moment_bind(connection.dialect)
    return bind(utc_now()) if bind else utc_now()


@lru_cache(maxsize=2)
def _moment_bind(dialect: Dialect) -> Callable[[Any], Any] | None:
    column = Delivery.__table__.c.received_at  # type: ignore[attr-defined]
    processor: Callable[[Any], Any] | None = column.type.dialect_impl(dialect).bind_processor(dialect)
    return processor
