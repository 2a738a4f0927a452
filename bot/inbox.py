"""The inbox: deliveries are stored before they are acknowledged, each guid once."""

import json
import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

import orjson
import structlog
from sqlalchemy.dialects import postgresql, sqlite

from bot.errors import PayloadError
from bot.payload import clean
from store.database import Database
from store.states import DeliveryState
from store.tables import Delivery
from store.types import utc_now

_log = structlog.get_logger(__name__)
_LONGEST_NAME = 100
_MOST_AT_ONCE = 200
_MOST_BYTES_AT_ONCE = 32 * 1024 * 1024


@dataclass(frozen=True)
class Arrival:
    """A delivery that is not stored yet."""

    guid: str
    event: str
    action: str
    body: bytes


def decode(body: bytes) -> dict[str, Any]:
    """Return the JSON object that a body holds.

    Raises:
        PayloadError: it is no JSON, no object, or nested without end.
    """
    try:
        payload = orjson.loads(body)
    except orjson.JSONDecodeError:
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
    action = decode(body).get("action")
    return Arrival(guid, event, clean(action)[:_LONGEST_NAME] if isinstance(action, str) else "", body)


def store_delivery(database: Database, guid: str, event: str, body: bytes) -> int | None:
    """Store a delivery and return its id, or None where this guid is known.

    Raises:
        PayloadError: the body is not a JSON object.
    """
    found = arrival(guid, event, body)
    return store_all(database, [found])[0]


def store_all(database: Database, arrivals: Sequence[Arrival]) -> list[int | None]:
    """Store deliveries in one transaction; returns the id of each, or None where its guid is known."""
    now = utc_now()
    rows = [
        {"guid": one.guid, "event": one.event, "action": one.action, "payload": one.body, "received_at": now}
        for one in {one.guid: one for one in reversed(arrivals)}.values()  # of two with one guid the first
    ]
    with database.engine.begin() as connection:
        statement = _INSERTS[connection.dialect.name]
        ids: dict[str, int] = {row[0]: row[1] for row in connection.execute(statement, rows)}
    return [ids.pop(one.guid, None) for one in arrivals]


def _insert_into(insert: Any) -> Any:
    """Core, not the ORM, and made once: this runs for every webhook."""
    table = Delivery.__table__  # type: ignore[attr-defined]
    return (
        insert(table)
        .values(state=DeliveryState.RECEIVED, reason="", tries=0)
        .on_conflict_do_nothing(index_elements=["guid"])
        .returning(table.c.guid, table.c.id)
    )


_INSERTS = {"sqlite": _insert_into(sqlite.insert), "postgresql": _insert_into(postgresql.insert)}


class Inbox:
    """Stores the deliveries that arrive together in one transaction: under load one sync of the disk serves many.

    A single one waits for nobody. `put` returns at once; its future holds the id, or None where the guid is known, once
    the delivery is durable.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: queue.SimpleQueue[tuple[Arrival, Future[int | None]] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="inbox", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def put(self, arrival: Arrival) -> "Future[int | None]":
        future: Future[int | None] = Future()
        self._waiting.put((arrival, future))
        return future

    def close(self) -> None:
        """Store what waits and end."""
        self._waiting.put(None)
        self._thread.join(30)

    def _work(self) -> None:
        while True:
            batch, ended = self._next_batch()
            if batch:
                self._store(batch)
            if ended:
                return

    def _next_batch(self) -> tuple[list[tuple[Arrival, "Future[int | None]"]], bool]:
        """Wait for one and take what has come in the meantime with it."""
        first = self._waiting.get()
        if first is None:
            return [], True
        batch, size = [first], len(first[0].body)
        while len(batch) < _MOST_AT_ONCE and size < _MOST_BYTES_AT_ONCE:
            try:
                following = self._waiting.get_nowait()
            except queue.Empty:
                break
            if following is None:
                return batch, True
            batch.append(following)
            size += len(following[0].body)
        return batch, False

    def _store(self, batch: Sequence[tuple[Arrival, "Future[int | None]"]]) -> None:
        try:
            ids = store_all(self._database, [arrival for arrival, _ in batch])
        except Exception as error:  # noqa: BLE001  (each of them answers for itself)
            for _, future in batch:
                future.set_exception(error)
            return
        for (_, future), number in zip(batch, ids, strict=True):
            future.set_result(number)


class Waker:
    """Wakes workers from a thread of its own: a broker that is slow or away holds up no webhook.

    What it loses, the reconciler finds.
    """

    def __init__(self, deliver: Callable[[int], None]) -> None:
        self._deliver = deliver
        self._waiting: queue.SimpleQueue[int | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="waker", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._waiting.put(None)
        self._thread.join(5)

    def wake_for(self, delivery_id: int) -> None:
        self._waiting.put(delivery_id)

    def _work(self) -> None:
        while (delivery_id := self._waiting.get()) is not None:
            try:
                self._deliver(delivery_id)
            except Exception:  # noqa: BLE001  (each broker has its own)
                _log.exception("webhook.queue_unreachable", delivery_id=delivery_id)
