"""The inbox: deliveries are stored before they are acknowledged, each guid once."""

import json
from typing import Any

from sqlalchemy.exc import IntegrityError

from bot.errors import PayloadError
from bot.payload import clean
from store.database import Database
from store.tables import Delivery

_LONGEST_NAME = 100


def decode(body: bytes) -> dict[str, Any]:
    """Return the JSON object that a body holds.

    Raises:
        PayloadError: it is no JSON, no object, or nested without end.
    """
    try:
        payload = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise PayloadError(
            "The body is not JSON. Set the App's webhook to the content type application/json."
        ) from error
    if not isinstance(payload, dict):
        raise PayloadError("The body is not a JSON object.")
    return payload


def store_delivery(database: Database, guid: str, event: str, body: bytes) -> int | None:
    """Store a delivery and return its id, or None where this guid is known.

    Raises:
        PayloadError: the body is not a JSON object.
    """
    action = decode(body).get("action")
    row = Delivery(
        guid=guid,
        event=event,
        action=clean(action)[:_LONGEST_NAME] if isinstance(action, str) else "",
        payload=body,
    )
    try:
        with database.session() as session:
            session.add(row)
    except IntegrityError:
        return None
    return row.id
