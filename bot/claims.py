"""The right to handle one delivery: renewed while that lasts, and free again a while after its process has died."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog
from sqlalchemy.exc import SQLAlchemyError
from sqlmodel import col, or_, select, update

from store.database import Database
from store.states import DeliveryState
from store.tables import Delivery
from store.types import utc_now

_log = structlog.get_logger(__name__)
# Renewals before a claim runs out: two may fail.
_BEATS = 3


@dataclass(frozen=True)
class Claim:
    """A delivery that this call handles."""

    id: int
    guid: str
    event: str
    payload: bytes
    tries: int
    received_at: datetime


def take(database: Database, delivery_id: int, lease_s: float) -> Claim | None:
    """Take a delivery that waits and is due, so that no other process does before `lease_s` seconds have passed."""
    now = utc_now()
    with database.session() as session:
        taken = session.execute(
            update(Delivery)
            .where(
                col(Delivery.id) == delivery_id,
                col(Delivery.state) == DeliveryState.RECEIVED,
                or_(col(Delivery.not_before).is_(None), col(Delivery.not_before) <= now),
            )
            .values(tries=col(Delivery.tries) + 1, not_before=now + timedelta(seconds=lease_s))
            .returning(col(Delivery.id))
        ).first()
        if taken is None:
            return None
        row = session.exec(select(Delivery).where(Delivery.id == delivery_id)).one()
        return Claim(delivery_id, row.guid, row.event, row.payload, row.tries, row.received_at)


@contextmanager
def held(database: Database, claim: Claim, lease_s: float) -> Iterator[None]:
    """Keep the claim for as long as the block takes: GitHub can be slow, and a second handler would answer twice."""
    ended = threading.Event()
    thread = threading.Thread(
        target=_renew, args=(database, claim, lease_s, ended), name=f"claim-{claim.id}", daemon=True
    )
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _renew(database: Database, claim: Claim, lease_s: float, ended: threading.Event) -> None:
    while not ended.wait(lease_s / _BEATS):
        try:
            with database.session() as session:
                session.execute(
                    update(Delivery)
                    .where(
                        col(Delivery.id) == claim.id,
                        col(Delivery.state) == DeliveryState.RECEIVED,
                        col(Delivery.tries) == claim.tries,  # each claim counts one
                    )
                    .values(not_before=utc_now() + timedelta(seconds=lease_s))
                )
        except SQLAlchemyError as error:
            _log.warning("claim.renewal_failed", delivery_id=claim.id, error=str(error))
