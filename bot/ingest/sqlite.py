"""The inbox on SQLite: the event loop writes to the log, a thread waits for the disk.

The connection's own commits do not wait for the disk (`synchronous=NORMAL`); the log is synced before anybody is told.
So the loop goes on with the next deliveries meanwhile, and no second thread contends for the interpreter.
https://www.sqlite.org/pragma.html#pragma_synchronous
"""

import asyncio
import errno
import os
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple, ParamSpec, TypeVar

import structlog
from sqlalchemy import Connection, text
from sqlalchemy.exc import OperationalError, SQLAlchemyError

from bot.inbox import Arrival, store_all
from store.checkpoints import LEAVE_CHECKPOINTS_TO_OTHERS, Checkpoints, file_of
from store.database import BUSY_TIMEOUT_MS, Database

_log = structlog.get_logger(__name__)
_SHORT = 256 * 1024
"""Bytes that are written between two other requests; more goes to the thread."""
_sync: Callable[[int], None] = getattr(os, "fdatasync", os.fsync)  # macOS has but the latter
_P = ParamSpec("_P")
_T = TypeVar("_T")


class _Opened(NamedTuple):
    connection: Connection
    log: int | None
    """The descriptor of what must be synced; None where SQLite does it at each commit."""


class SqliteInbox:
    """Fulfils `bot.ingest.inboxes.Inbox`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._opened: _Opened | None = None
        self._doubtful = False
        """A sync has failed: nothing that is in the log may be believed to be on the disk."""
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="ingest")
        self._checkpoints = Checkpoints(database)
        self._checkpoints.start()

    async def store(self, arrivals: Sequence[Arrival]) -> list[int | None]:
        """As the Protocol has it.

        Raises:
            SQLAlchemyError: it cannot be written to.
            OSError: what was written did not reach the disk.
        """
        sizes = [len(one.packed) for one in arrivals]
        try:
            if self._opened is None:
                self._opened = await self._in_thread(self._connect)
            elif self._checkpoints.rest_due:
                await self._in_thread(self._move_the_rest, self._opened.connection)
            ids = await self._written(self._opened, arrivals, short=sum(sizes) <= _SHORT)
            if self._opened.log is not None:
                await self._in_thread(self._sync_log, self._opened.log)
        except Exception:
            await self._in_thread(self._disconnect)
            raise
        self._checkpoints.written(sizes)
        return ids

    async def close(self) -> None:
        await self._in_thread(self._disconnect)
        await asyncio.to_thread(self._checkpoints.close)
        self._thread.shutdown()

    async def _written(self, opened: _Opened, arrivals: Sequence[Arrival], *, short: bool) -> list[int | None]:
        if short and opened.log is not None:
            try:
                return store_all(opened.connection, arrivals)
            except OperationalError as error:
                if not _is_busy(error):
                    raise
        return await self._in_thread(self._write_patiently, opened.connection, arrivals)

    def _connect(self) -> _Opened:
        connection = self._database.engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        connection.detach()  # no other is to get it as it is now
        try:
            if self._doubtful:
                self._empty_the_log(connection)
            connection.execute(LEAVE_CHECKPOINTS_TO_OTHERS)
            connection.execute(_WAIT_FOR_NOBODY)
            if connection.execute(text("PRAGMA journal_mode")).scalar_one() != "wal":  # a disk without shared memory
                return _Opened(connection, None)
            connection.execute(text("PRAGMA synchronous=NORMAL"))
            # The log lives as long as this connection does. SQLite has no locks on it that closing this would take off.
            return _Opened(connection, os.open(f"{file_of(connection)}-wal", os.O_RDONLY))
        except BaseException:
            connection.close()
            raise

    def _sync_log(self, log: int) -> None:
        try:
            _sync(log)
        except OSError:
            self._doubtful = True
            raise

    def _empty_the_log(self, connection: Connection) -> None:
        """Move all of a log into the database of which a part may not have reached the disk.

        What is committed there counts as known, and what would be written behind it could not be read without it; a
        second sync of the same pages tells nothing (https://wiki.postgresql.org/wiki/Fsync_Errors).
        """
        busy, _pages, _moved = connection.execute(text("PRAGMA wal_checkpoint(TRUNCATE)")).one()
        if busy:
            raise OSError(errno.EBUSY, "what did not reach the disk before could not be written again yet")
        self._doubtful = False

    def _write_patiently(self, connection: Connection, arrivals: Sequence[Arrival]) -> list[int | None]:
        connection.execute(text(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}"))
        ids = store_all(connection, arrivals)
        connection.execute(_WAIT_FOR_NOBODY)
        return ids

    def _move_the_rest(self, connection: Connection) -> None:
        try:
            self._checkpoints.move_the_rest(connection)
        except SQLAlchemyError:  # what is stored is stored; a later checkpoint does it
            _log.warning("ingest.log_not_moved", exc_info=True)

    def _disconnect(self) -> None:
        opened, self._opened = self._opened, None
        if opened is None:
            return
        if opened.log is not None:
            os.close(opened.log)
        try:
            opened.connection.close()
        except SQLAlchemyError:  # the next delivery gets a new one
            _log.warning("ingest.not_closed", exc_info=True)

    async def _in_thread(self, work: Callable[_P, _T], *arguments: _P.args, **options: _P.kwargs) -> _T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, partial(work, *arguments, **options))


def _is_busy(error: OperationalError) -> bool:
    return getattr(error.orig, "sqlite_errorcode", None) == sqlite3.SQLITE_BUSY


_WAIT_FOR_NOBODY = text("PRAGMA busy_timeout=0")
"""For what runs in the event loop."""
