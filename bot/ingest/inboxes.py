"""The seam between the group commit and the two databases."""

from collections.abc import Sequence
from typing import Protocol

from bot.inbox import Arrival
from bot.ingest.postgres import PostgresInbox
from bot.ingest.sqlite import SqliteInbox
from store.database import Database


class Inbox(Protocol):
    """Used from the event loop, by one caller at a time."""

    async def store(self, arrivals: Sequence[Arrival]) -> list[int | None]:
        """Store deliveries in one transaction and return once they are durable.

        Returns the id of each, or None where its guid is known. What fails leaves nothing behind that the next call
        would stumble over.
        """

    async def close(self) -> None: ...


def open_inbox(database: Database) -> Inbox:
    """Return the inbox of a database. It connects when it is first needed."""
    return SqliteInbox(database) if database.is_sqlite else PostgresInbox(database)
