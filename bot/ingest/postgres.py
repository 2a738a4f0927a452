"""The inbox on Postgres: over a connection of the event loop's own, which goes on while the server works."""

import asyncio
import contextlib
from collections.abc import Sequence

import psycopg

from bot.inbox import Arrival, first_of_each, ids_of_each
from store.database import Database
from store.states import DeliveryState
from store.types import utc_now

_PATIENCE_S = 5.0

# One text for any number of rows: the driver and the server prepare it once.
_INSERT = (
    "INSERT INTO delivery (guid, event, action, payload, received_at, state, reason, tries) "  # noqa: S608
    f"SELECT guid, event, action, payload, %s, '{DeliveryState.RECEIVED.value}', '', 0 "
    "FROM unnest(%b::text[], %b::text[], %b::text[], %b::bytea[]) AS arrived (guid, event, action, payload) "
    "ON CONFLICT (guid) DO NOTHING RETURNING guid, id"
)


class PostgresInbox:
    """Fulfils `bot.ingest.inboxes.Inbox`. One statement is one transaction: it needs no round trip to begin or end."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._connection: psycopg.AsyncConnection | None = None

    async def store(self, arrivals: Sequence[Arrival]) -> list[int | None]:
        """As the Protocol has it.

        Raises:
            psycopg.Error: the server cannot be reached or refuses.
            TimeoutError: it does not answer. GitHub waits for 10 s at most.
        """
        return ids_of_each(arrivals, await self._insert(first_of_each(arrivals)))

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(psycopg.Error):
                await connection.close()

    async def _insert(self, rows: Sequence[Arrival]) -> dict[str, int]:
        known = self._connection is not None
        try:
            return await self._insert_once(rows)
        except psycopg.Error:
            # The server was restarted since the last time, or what was prepared is forgotten or outdated. Storing again
            # is harmless: each guid is stored once.
            await self.close()
            if not known:
                raise
        except TimeoutError:
            await self.close()
            raise
        try:
            return await self._insert_once(rows)
        except (psycopg.Error, TimeoutError):
            await self.close()
            raise

    async def _insert_once(self, rows: Sequence[Arrival]) -> dict[str, int]:
        guids, events = [one.guid for one in rows], [one.event for one in rows]
        actions, bodies = [one.action for one in rows], [one.packed for one in rows]
        async with asyncio.timeout(_PATIENCE_S):
            if self._connection is None:
                arguments, options = self._database.engine.dialect.create_connect_args(self._database.engine.url)
                options["autocommit"] = True
                self._connection = await psycopg.AsyncConnection.connect(*arguments, **options)
            cursor = await self._connection.execute(_INSERT, (utc_now(), guids, events, actions, bodies))
            return dict(await cursor.fetchall())
