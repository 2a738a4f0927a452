"""Group commit: deliveries that arrive together are stored in one transaction, then their workers are woken."""

import asyncio
import queue
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import structlog
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from bot.inbox import Arrival, store_all
from store.checkpoints import LEAVE_CHECKPOINTS_TO_OTHERS, Checkpoints
from store.database import Database

_log = structlog.get_logger(__name__)
_MOST_AT_ONCE = 200
_MOST_BYTES_AT_ONCE = 32 * 1024 * 1024
_LONGEST_PATIENCE_S = 0.005


_Result = int | Exception | None


@dataclass(frozen=True)
class _Waiting:
    """A delivery whose sender waits for the answer."""

    arrival: Arrival
    stored: "asyncio.Future[int | None]"


class Ingest:
    """Stores the deliveries that arrive together in one transaction: under load one sync of the disk serves many.

    A single one waits for nobody. In a crowd the next transaction is given half of the last one's time to fill up to
    what was there before: senders that are answered together send again together, and else two halves of them would
    wait for each other's syncs. One thread has the database's connection and waits for the disk; `wake` gets the ids of
    what was new, from another thread.
    """

    def __init__(self, database: Database, wake: Callable[[int], None]) -> None:
        self._database = database
        self._connection: Connection | None = None
        self._waker = _Waker(wake)
        self._checkpoints = Checkpoints(database)
        self._thread = threading.Thread(target=self._work, name="ingest", daemon=True)
        self._lock = threading.Lock()
        self._waiting: list[_Waiting] = []
        self._crowd = 1
        self._patience_s = 0.0
        self._enough = threading.Event()
        """Set where a batch is due: the first has come, or the whole crowd, or the end."""
        self._ended = False

    def start(self) -> None:
        """Start in the event loop that runs here; it is told what was stored."""
        self._loop = asyncio.get_running_loop()
        self._waker.start()
        self._checkpoints.start()
        self._thread.start()

    def close(self) -> None:
        """Store what waits and end. Waits for it, so call it outside the event loop."""
        self._ended = True
        self._enough.set()
        self._thread.join(30)
        self._waker.close()
        self._checkpoints.close()

    async def store(self, arrival: Arrival) -> int | None:
        """Return once the delivery is durable: its id, or None where its guid is known.

        Raises:
            SQLAlchemyError: it could not be stored.
        """
        stored: asyncio.Future[int | None] = self._loop.create_future()
        with self._lock:
            self._waiting.append(_Waiting(arrival, stored))
            due = len(self._waiting) in (1, self._crowd)
        if due:
            self._enough.set()
        return await stored

    def _work(self) -> None:
        while not self._ended or self._waiting:
            self._enough.wait()
            self._wait_for_the_crowd()
            batch = self._next_batch()
            if batch:
                began = time.monotonic()
                self._store(batch)
                self._patience_s = min((time.monotonic() - began) / 2, _LONGEST_PATIENCE_S)
                self._crowd = min(len(batch) + len(self._waiting), _MOST_AT_ONCE)
        self._disconnect()

    def _wait_for_the_crowd(self) -> None:
        self._enough.clear()
        if not self._ended and len(self._waiting) < self._crowd:
            self._enough.wait(self._patience_s)
            self._enough.clear()

    def _next_batch(self) -> list[_Waiting]:
        """Take what waits, as much as one transaction may hold."""
        with self._lock:
            number, size = 0, 0
            while number < min(len(self._waiting), _MOST_AT_ONCE) and size < _MOST_BYTES_AT_ONCE:
                size += len(self._waiting[number].arrival.packed)
                number += 1
            batch, self._waiting = self._waiting[:number], self._waiting[number:]
            if self._waiting or self._ended:
                self._enough.set()
        return batch

    def _store(self, batch: Sequence[_Waiting]) -> None:
        try:
            ids = self._store_over_a_living_connection([one.arrival for one in batch])
        except Exception as error:  # noqa: BLE001  (each of them answers for itself)
            self._disconnect()
            self._tell(batch, [error] * len(batch))
            return
        self._tell(batch, ids)
        self._waker.wake([number for number in ids if number is not None])
        self._checkpoints.written([len(one.arrival.packed) for one in batch])
        self._move_the_rest()

    def _move_the_rest(self) -> None:
        try:
            self._checkpoints.move_the_rest(self._connected())
        except SQLAlchemyError:  # what is stored is stored; a later checkpoint does it
            _log.warning("ingest.log_not_moved", exc_info=True)

    def _store_over_a_living_connection(self, arrivals: Sequence[Arrival]) -> list[int | None]:
        try:
            return store_all(self._connected(), arrivals)
        except DBAPIError as error:
            if not error.connection_invalidated:
                raise
            # The server was restarted since the last one. Storing again is harmless: each guid is stored once.
            self._disconnect()
            return store_all(self._connected(), arrivals)

    def _connected(self) -> Connection:
        """One statement is one transaction: it needs no round trips to begin and to commit."""
        if self._connection is None:
            self._connection = self._database.engine.connect().execution_options(isolation_level="AUTOCOMMIT")
            if self._database.is_sqlite:
                self._connection.detach()  # no other is to get it as it is now
                self._connection.execute(LEAVE_CHECKPOINTS_TO_OTHERS)
        return self._connection

    def _tell(self, batch: Sequence[_Waiting], results: Sequence[_Result]) -> None:
        """Answer all of a batch by one wake-up of the event loop."""
        told = list(zip(batch, results, strict=True))
        try:
            self._loop.call_soon_threadsafe(_resolve, told)
        except RuntimeError:  # the loop has ended; what is stored is stored
            _log.warning("ingest.nobody_waits", deliveries=len(told))

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            try:
                connection.close()
            except SQLAlchemyError:  # this thread must go on: without it no webhook gets an answer
                _log.warning("ingest.not_closed", exc_info=True)


def _resolve(told: Sequence[tuple[_Waiting, _Result]]) -> None:
    for waiting, result in told:
        if waiting.stored.done():  # whoever waited has gone
            continue
        if isinstance(result, Exception):
            waiting.stored.set_exception(result)
        else:
            waiting.stored.set_result(result)


class _Waker:
    """Wakes workers from a thread of its own: a broker that is slow or away holds up no webhook.

    What it loses, the reconciler finds.
    """

    def __init__(self, wake: Callable[[int], None]) -> None:
        self._wake = wake
        self._waiting: queue.SimpleQueue[Sequence[int] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="waker", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._waiting.put(None)
        self._thread.join(5)

    def wake(self, delivery_ids: Sequence[int]) -> None:
        self._waiting.put(delivery_ids)

    def _work(self) -> None:
        while (delivery_ids := self._waiting.get()) is not None:
            for delivery_id in delivery_ids:
                try:
                    self._wake(delivery_id)
                except Exception:  # noqa: BLE001  (each broker has its own)
                    _log.exception("webhook.queue_unreachable", delivery_id=delivery_id)
