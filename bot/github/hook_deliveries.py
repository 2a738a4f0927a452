"""Webhooks that GitHub sent and that did not arrive here.

GitHub keeps the App's deliveries of the last three days and sends none again by itself.
https://docs.github.com/en/rest/apps/webhooks#list-deliveries-for-an-app-webhook
"""

import json
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import structlog

from bot.github.client import Clients

_log = structlog.get_logger(__name__)
_PER_PAGE = 100
_MOST_PAGES = 300
"""A busy App's weekend; each is a request, and takes a fifth of a second."""
_CURSOR = re.compile(r"[?&]cursor=([^&>]+)[^>]*>;\s*rel=\"next\"")
_GUID = re.compile(r"[A-Za-z0-9_.:\-]{1,100}")


@dataclass(frozen=True)
class Missed:
    """A webhook as GitHub has it. Its body is JSON again, not the bytes that were signed: GitHub itself gave it."""

    guid: str
    event: str
    body: bytes


def missed(clients: Clients, since: datetime, known: Callable[[Collection[str]], set[str]]) -> Iterator[Missed]:
    """Yield the deliveries since `since` that `known`, given their guids, does not know; the oldest first.

    A redelivery has the guid of the first try, so one that arrived in the end is known.

    Where there are more than it lists, the older ones are lost, and the log says so.

    Raises:
        ForgeTemporary, ForgeError: GitHub could not tell.
    """
    newest_first: dict[str, dict[str, Any]] = {}
    for item in _listed(clients, since):
        if _GUID.fullmatch(str(item.get("guid", ""))):
            newest_first.setdefault(item["guid"], item)
    there = known(newest_first.keys())
    for guid, item in reversed(newest_first.items()):
        if guid not in there:
            detail = clients.as_app("GET", f"/app/hook/deliveries/{item['id']}", f"read the delivery {guid}")
            payload = (detail.get("request") or {}).get("payload")
            if isinstance(payload, dict):
                yield Missed(guid, str(item["event"]), json.dumps(payload).encode())


def _listed(clients: Clients, since: datetime) -> Iterator[dict[str, Any]]:
    cursor = ""
    for _ in range(_MOST_PAGES):
        query = f"?per_page={_PER_PAGE}" + (f"&cursor={cursor}" if cursor else "")
        headers, page = clients.page_as_app(f"/app/hook/deliveries{query}", "list the webhook's deliveries")
        for item in page:
            if datetime.fromisoformat(item["delivered_at"]) < since:
                return
            yield item
        following = _CURSOR.search(headers.get("link", ""))
        if following is None:
            return
        cursor = following[1]
    _log.warning("sweep.too_many", listed=_MOST_PAGES * _PER_PAGE, since=since.isoformat())
