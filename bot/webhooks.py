"""The webhook endpoint as bare ASGI: it runs for every delivery, and a framework's layers cost more than its work.

https://docs.github.com/en/webhooks/webhook-events-and-payloads#delivery-headers
"""

import re
from http import HTTPStatus
from time import monotonic

import msgspec
import structlog
from starlette.concurrency import run_in_threadpool
from starlette.types import Message, Receive, Scope, Send

from bot.errors import NotStoredError, PayloadError, SignatureError
from bot.inbox import Arrival, arrival
from bot.ingest.group_commit import Ingest
from bot.signature import verify
from store.tracing import root_span

_log = structlog.get_logger(__name__)
_SHORT = 256 * 1024
"""Bytes that are looked at between two other requests; more goes to a thread."""
_TELL_EVERY_S = 60.0
"""Anybody can send what is refused: the log is not theirs to fill."""
_NAME = re.compile(rb"[A-Za-z0-9_.:\-]{1,100}")
_SPELT = {b"x-github-delivery": "X-GitHub-Delivery", b"x-github-event": "X-GitHub-Event"}
# A browser that is led here shows and runs nothing.
_HEADERS = [
    (b"content-type", b"application/json"),
    (b"content-security-policy", b"default-src 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
]


def _answer(status: HTTPStatus, told: dict[str, str]) -> tuple[Message, Message]:
    body = msgspec.json.encode(told)
    headers = [*_HEADERS, (b"content-length", str(len(body)).encode())]
    if status == HTTPStatus.METHOD_NOT_ALLOWED:
        headers.append((b"allow", b"POST"))
    start = {"type": "http.response.start", "status": int(status), "headers": headers}
    return start, {"type": "http.response.body", "body": body}


_ANSWERS = {words: _answer(HTTPStatus.ACCEPTED, {"status": words}) for words in ("accepted", "duplicate")}


class WebhookGate:
    """An ASGI application for `WEBHOOK_PATH` alone: takes in what GitHub delivers."""

    def __init__(self, *, secret: str, max_body_bytes: int, ingest: Ingest) -> None:
        self._secret = secret
        self._max_body_bytes = max_body_bytes
        self._ingest = ingest
        self._refused = 0
        self._tell_at = 0.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            start, body = _ANSWERS[await self._take(scope, receive)]
        except _Refused as refusal:
            self._tell(refusal)
            start, body = _answer(refusal.status, {"detail": str(refusal)})
        except _SenderGone:
            return
        await send(start)
        await send(body)

    def _tell(self, refusal: "_Refused") -> None:
        """Log why something was refused: a secret that was changed on one side alone shows nowhere else."""
        if refusal.status not in (HTTPStatus.UNAUTHORIZED, HTTPStatus.REQUEST_ENTITY_TOO_LARGE):
            return
        self._refused += 1
        now = monotonic()
        if now >= self._tell_at:
            _log.warning("webhook.refused", reason=str(refusal), count=self._refused)
            self._refused, self._tell_at = 0, now + _TELL_EVERY_S

    async def _take(self, scope: Scope, receive: Receive) -> str:
        """Store one delivery and have a worker woken. Nothing else happens before GitHub has its answer."""
        if scope["method"] != "POST":
            raise _Refused(HTTPStatus.METHOD_NOT_ALLOWED, "GitHub delivers by POST.")
        told = dict(reversed(scope["headers"]))  # of two, the first holds
        guid = _name(told, b"x-github-delivery")
        event = _name(told, b"x-github-event")
        body = await self._read(told.get(b"content-length", b""), receive)
        signature = told.get(b"x-hub-signature-256", b"").decode("latin-1")
        if len(body) <= _SHORT:
            found = self._look_at(guid, event, body, signature)
        else:  # so long a look would hold up all others
            found = await run_in_threadpool(self._look_at, guid, event, body, signature)
        with root_span("webhook", guid, event=event):
            try:
                delivery_id = await self._ingest.store(found)
            except NotStoredError as error:
                _log.warning("webhook.not_acknowledged", guid=guid, reason=str(error))
                # GitHub keeps what was not acknowledged: it can be delivered again.
                words = "The delivery could not be stored."
                raise _Refused(HTTPStatus.SERVICE_UNAVAILABLE, words) from error
        return "duplicate" if delivery_id is None else "accepted"

    async def _read(self, announced: bytes, receive: Receive) -> bytes:
        """Return the body, given up as soon as it is larger than it may be."""
        limit = self._max_body_bytes
        if announced.isdigit() and int(announced) > limit:
            raise _too_large(limit)
        parts: list[bytes] = []
        size = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise _SenderGone
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > limit:
                raise _too_large(limit)
            if not message.get("more_body", False):
                return b"".join(parts)

    def _look_at(self, guid: str, event: str, body: bytes, signature: str) -> Arrival:
        try:
            verify(body, signature, self._secret)
            return arrival(guid, event, body)
        except SignatureError as error:
            raise _Refused(HTTPStatus.UNAUTHORIZED, str(error)) from error
        except PayloadError as error:
            raise _Refused(HTTPStatus.BAD_REQUEST, str(error)) from error


class _Refused(Exception):  # noqa: N818  (an answer, not a fault)
    """What is not taken in, by the status that its sender gets."""

    def __init__(self, status: HTTPStatus, detail: str) -> None:
        super().__init__(detail)
        self.status = status


class _SenderGone(Exception):  # noqa: N818
    """The connection ended in the middle of the body: there is nobody to answer."""


def _too_large(limit: int) -> _Refused:
    return _Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"The body is larger than {limit} bytes.")


def _name(told: dict[bytes, bytes], header: bytes) -> str:
    value = told.get(header, b"")
    if not _NAME.fullmatch(value):
        fault = "is not one of GitHub's" if value else "is missing"
        raise _Refused(HTTPStatus.BAD_REQUEST, f"The {_SPELT[header]} header {fault}.")
    return value.decode("ascii")
