"""Group commit: deliveries that arrive together are stored in one transaction, then their workers are woken."""

import asyncio
from collections.abc import Callable, Sequence
from typing import NamedTuple

import structlog

from bot.errors import NotStoredError
from bot.inbox import Arrival
from bot.ingest.inboxes import Inbox, open_inbox
from bot.ingest.waker import Waker
from store.database import Database

_log = structlog.get_logger(__name__)
_MOST_AT_ONCE = 200
_MOST_BYTES_AT_ONCE = 2 * 1024 * 1024
_LONGEST_END_S = 30.0
_Result = int | NotStoredError | None


class _Waiting(NamedTuple):
    """A delivery whose sender waits for the answer."""

    arrival: Arrival
    stored: "asyncio.Future[int | None]"


class Ingest:
    """Stores the deliveries that arrive together in one transaction: under load one sync of the disk serves many.

    A single one waits for nobody. While a transaction is on its way, the event loop takes in what belongs to the next.
    `wake` gets the ids of what was new, from another thread.
    """

    def __init__(self, database: Database, wake: Callable[[int], None]) -> None:
        self._database = database
        self._waker = Waker(wake)
        self._waiting: list[_Waiting] = []
        self._ended = False

    def start(self) -> None:
        """Start in the event loop that runs here."""
        self._some = asyncio.Event()
        self._inbox: Inbox = open_inbox(self._database)
        self._waker.start()
        self._task = asyncio.create_task(self._work(), name="ingest")

    async def close(self) -> None:
        """Store what waits and end."""
        self._ended = True
        self._some.set()
        await asyncio.wait([self._task], timeout=_LONGEST_END_S)
        self._task.cancel()
        await asyncio.to_thread(self._waker.close)

    async def store(self, arrival: Arrival) -> int | None:
        """Return once the delivery is durable: its id, or None where its guid is known.

        Raises:
            NotStoredError: it could not be stored.
        """
        if self._ended:
            raise NotStoredError("The process is about to end.")
        stored: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiting(arrival, stored))
        self._some.set()
        return await stored

    async def _work(self) -> None:
        while not self._ended or self._waiting:
            await self._some.wait()
            if batch := self._next_batch():
                await self._store(batch)
        await self._inbox.close()

    def _next_batch(self) -> list[_Waiting]:
        """Take what waits, as much as one transaction may hold."""
        number, size = 0, 0
        while number < min(len(self._waiting), _MOST_AT_ONCE) and size < _MOST_BYTES_AT_ONCE:
            size += len(self._waiting[number].arrival.packed)
            number += 1
        batch, self._waiting = self._waiting[:number], self._waiting[number:]
        if not self._waiting and not self._ended:
            self._some.clear()
        return batch

    async def _store(self, batch: Sequence[_Waiting]) -> None:
        results: Sequence[_Result]
        try:
            results = await self._inbox.store([one.arrival for one in batch])
        except Exception as error:  # noqa: BLE001  (each of them answers for itself, and the next ones are stored)
            _log.exception("webhook.not_stored", deliveries=len(batch))
            results = [NotStoredError(type(error).__name__)] * len(batch)
        for waiting, result in zip(batch, results, strict=True):
            _tell(waiting.stored, result)
        self._waker.wake([result for result in results if isinstance(result, int)])


def _tell(stored: "asyncio.Future[int | None]", result: _Result) -> None:
    if stored.done():  # whoever waited has gone
        return
    if isinstance(result, NotStoredError):
        stored.set_exception(NotStoredError(str(result)))  # each with a trace of its own
    else:
        stored.set_result(result)
