"""Brings in the webhooks that did not arrive: GitHub keeps them, and sends none again by itself."""

from collections.abc import Collection
from datetime import timedelta

import structlog
from sqlmodel import col, select

from bot.errors import PayloadError
from bot.github.forge import GitHubForge
from bot.inbox import store_delivery
from store.database import Database
from store.tables import Delivery
from store.types import utc_now
from workers.errors import ForgeError, ForgeTemporary
from workers.runtime import Runtime
from workers.sweeps import complete, put_off, take_turn

_log = structlog.get_logger(__name__)
KEPT = timedelta(days=3)
"""How long GitHub keeps deliveries."""
_OVERLAP = timedelta(minutes=15)
"""Deliveries are listed a little after they were sent."""


def sweep_deliveries(runtime: Runtime) -> int:
    """Store what was missed since the last complete look, wake workers for it, and return how many there were."""
    forge = runtime.forge
    if not isinstance(forge, GitHubForge):
        return 0
    turn = take_turn(runtime.database, "deliveries", runtime.settings.sweep_every_s)
    if turn is None:
        return 0
    oldest = utc_now() - KEPT
    since = max(turn.done_until - _OVERLAP, oldest) if turn.done_until else oldest
    count = 0
    try:
        for found in forge.missed_deliveries(since, lambda guids: _known(runtime.database, guids)):
            try:
                delivery_id = store_delivery(runtime.database, found.guid, found.event, found.body)
            except PayloadError as error:
                _log.warning("sweep.delivery", guid=found.guid, error=str(error))
                continue
            if delivery_id is not None:
                count += 1
                _log.info("sweep.delivery_found", guid=found.guid, kind=found.event)
                runtime.queue.deliver(delivery_id)
    except ForgeTemporary as error:
        _log.warning("sweep.waits", sweep="deliveries", error=str(error))
        put_off(runtime.database, turn, error)
    except ForgeError as error:  # the App's webhook may be switched off
        _log.warning("sweep.refused", sweep="deliveries", error=str(error))
    else:
        complete(runtime.database, turn)
    return count


def _known(database: Database, guids: Collection[str]) -> set[str]:
    found: set[str] = set()
    wanted = list(guids)
    with database.session() as session:
        for start in range(0, len(wanted), 500):
            part = wanted[start : start + 500]
            found.update(session.exec(select(Delivery.guid).where(col(Delivery.guid).in_(part))).all())
    return found
