"""SQLite's checkpoints away from who commits: moving the log into the database takes longer than many commits.

While somebody goes on writing, such a checkpoint never reaches the log's end, and the log is never begun anew. So now
and then the writer itself moves the little that was added meanwhile. SQLite syncs the database only then, and would
sync all that was moved since the last time: here each checkpoint is synced by the thread that did it.

https://www.sqlite.org/wal.html#performance_considerations
"""

import os
import threading
from collections.abc import Sequence
from functools import cache

from sqlalchemy import Connection, text
from sqlalchemy.exc import SQLAlchemyError

from store.database import Database

_PAGE_BYTES = 4096
_EVERY_BYTES = 4 * 1024 * 1024
"""As SQLite does by itself: 1,000 pages."""
_LONG_PAGES = 4_000
"""16 MB: the log is begun anew once it is longer."""


class Checkpoints:
    """Does them in a thread; on another database than SQLite it does nothing."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._bytes = 0
        self._due = threading.Event()
        self._rest_due = False
        self._ended = False
        self._thread = threading.Thread(target=self._work, name="checkpoints", daemon=True)

    def start(self) -> None:
        if self._database.is_sqlite:
            self._thread.start()

    def close(self) -> None:
        self._ended = True
        self._due.set()
        if self._thread.ident:
            self._thread.join(30)

    def written(self, sizes: Sequence[int]) -> None:
        """Take note of rows that were committed, by their bytes; returns at once."""
        self._bytes += sum(sizes) + len(sizes) * _PAGE_BYTES  # each has a page of a random index to itself
        if self._bytes >= _EVERY_BYTES:
            self._bytes = 0
            self._due.set()

    @property
    def rest_due(self) -> bool:
        return self._rest_due

    def move_the_rest(self, writer: Connection) -> None:
        """Do what is left of a checkpoint of a long log. The writer calls it between two commits, and it is short."""
        if self._rest_due:
            self._rest_due = False
            writer.execute(_CHECKPOINT)

    def _work(self) -> None:
        while True:
            self._due.wait()
            self._due.clear()
            if self._ended:
                return
            try:
                with self._database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
                    _busy, pages, _moved = connection.execute(_CHECKPOINT).one()
                    path = file_of(connection)
                os.fsync(_descriptor(path))
                self._rest_due = pages > _LONG_PAGES
            except (SQLAlchemyError, OSError):  # busy: the next one does more
                continue


def file_of(connection: Connection) -> str:
    """Return the path of a database, which its URL may give in more than one way."""
    return str(next(path for _, name, path in connection.execute(text("PRAGMA database_list")) if name == "main"))


@cache
def _descriptor(path: str) -> int:
    """Open a database to sync it. It stays open: closing it would take SQLite's own locks off the file.

    https://www.sqlite.org/howtocorrupt.html#_posix_advisory_locks_canceled_by_a_separate_thread_doing_close_
    """
    return os.open(path, os.O_RDONLY)


_CHECKPOINT = text("PRAGMA wal_checkpoint(PASSIVE)")
"""As much as can be done without waiting for anybody. Tells whether it was busy, the log's pages, and those moved."""
LEAVE_CHECKPOINTS_TO_OTHERS = text("PRAGMA wal_autocheckpoint=0")
"""For the connection whose commits must be short."""
