"""A chore: webhooks that were handled long ago are forgotten.

Each is kilobytes of the database, and an organisation sends thousands a day. GitHub sends one again for three days at
the most (https://docs.github.com/en/webhooks/testing-and-troubleshooting-webhooks/redelivering-webhooks), and until
then it must be known that it has been handled.
"""

import time
from collections.abc import Sequence
from datetime import datetime, timedelta

import structlog
from sqlmodel import col, delete, select

from store.database import Database
from store.states import DeliveryState
from store.tables import Delivery
from store.types import utc_now
from workers.runtime import Runtime
from workers.sweeps import complete, take_turn

_EVERY_S = 3600.0
_BATCH = 500
"""Others wait for the database no longer than these take."""
_WITHIN_S = 30.0
"""The process looks for lost tasks only afterwards; the rest has its turn in an hour."""
_log = structlog.get_logger(__name__)


def forget_old_deliveries(runtime: Runtime) -> int:
    """Remove what was received before the days that `ACROUTER_DELIVERY_DAYS` keeps, but what waits to be handled.

    Returns how many there were, 0 where it is another process's turn.
    """
    turn = take_turn(runtime.database, "old deliveries", _EVERY_S)
    if turn is None:
        return 0
    before = utc_now() - timedelta(days=runtime.settings.delivery_days)
    deadline = time.monotonic() + _WITHIN_S
    count = 0
    while found := _old(runtime.database, before):
        with runtime.database.session() as session:
            # A person may have asked meanwhile for one that failed to be handled again.
            session.execute(
                delete(Delivery).where(col(Delivery.id).in_(found), col(Delivery.state) != DeliveryState.RECEIVED)
            )
        count += len(found)
        if time.monotonic() > deadline:
            break
    complete(runtime.database, turn)
    if count:
        _log.info("deliveries.forgotten", count=count)
    return count


def _old(database: Database, before: datetime) -> Sequence[int | None]:
    with database.reading() as session:
        return session.exec(
            select(Delivery.id)
            .where(col(Delivery.received_at) < before, Delivery.state != DeliveryState.RECEIVED)
            .order_by(col(Delivery.received_at))
            .limit(_BATCH)
        ).all()
