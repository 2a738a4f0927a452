"""The HTTP side: webhooks come in, are stored and acknowledged; the work is done elsewhere. And the dashboard."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus

import structlog
from fastapi import FastAPI, HTTPException, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse, RedirectResponse, Response
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError

from bot.dashboard.app import add_dashboard
from bot.errors import PayloadError, SignatureError
from bot.inbox import Arrival, Inbox, Waker, arrival
from bot.signature import verify
from store.database import Database
from store.errors import ConfigurationError
from store.settings import Settings
from store.tracing import root_span
from workers.ports import Queue

_log = structlog.get_logger(__name__)
_SHORT = 256 * 1024
"""Bytes that are looked at between two other requests; more goes to a thread."""
_NAME = re.compile(r"[A-Za-z0-9_.:\-]{1,100}")


def create_app(settings: Settings, database: Database, queue: Queue) -> FastAPI:
    """Return the web application of one process.

    Raises:
        ConfigurationError: there is no webhook secret; an unsigned webhook is never taken.
    """
    secret = settings.secret("github_webhook_secret")
    if not secret:
        raise ConfigurationError(
            "GitHub App: set ACROUTER_GITHUB_WEBHOOK_SECRET or ACROUTER_GITHUB_WEBHOOK_SECRET_FILE to the secret of "
            "the App's webhook."
        )
    inbox, waker = Inbox(database), Waker(queue.deliver)

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        inbox.start()
        waker.start()
        yield
        await run_in_threadpool(inbox.close)
        await run_in_threadpool(waker.close)

    app = FastAPI(title="acrouter", docs_url=None, redoc_url=None, openapi_url=None, lifespan=lifespan)

    @app.get("/")
    async def root(request: Request) -> Response:
        if "text/html" in request.headers.get("Accept", ""):
            return RedirectResponse("/overview", HTTPStatus.SEE_OTHER)
        return JSONResponse({"name": "acrouter", "status": "ok", "webhooks": "/webhooks/github", "health": "/healthz"})

    @app.get("/healthz")
    async def health() -> JSONResponse:
        try:
            await run_in_threadpool(_ask_database, database)
        except SQLAlchemyError as error:
            _log.warning("health.database", error=type(error).__name__)
            return JSONResponse({"status": "failing", "database": "unreachable"}, HTTPStatus.SERVICE_UNAVAILABLE)
        return JSONResponse({"status": "ok", "database": "ok"})

    async def webhook(request: Request) -> JSONResponse:
        guid = _header(request, "X-GitHub-Delivery")
        event = _header(request, "X-GitHub-Event")
        body = await _read(request, settings.max_body_bytes)
        signature = request.headers.get("X-Hub-Signature-256")
        if len(body) <= _SHORT:
            _check(body, signature, secret)
            found = _look_at(guid, event, body)
        else:  # so long a look would hold up all others
            await run_in_threadpool(_check, body, signature, secret)
            found = await run_in_threadpool(_look_at, guid, event, body)
        return await _receive(inbox, waker, found)

    # Starlette's own route: FastAPI's reading of arguments costs more than all the rest.
    app.add_route("/webhooks/github", webhook, methods=["POST"])
    add_dashboard(app, settings, database, queue)
    return app


def _check(body: bytes, signature: str | None, secret: str) -> None:
    try:
        verify(body, signature, secret)
    except SignatureError as error:
        raise HTTPException(HTTPStatus.UNAUTHORIZED, str(error)) from error


def _look_at(guid: str, event: str, body: bytes) -> Arrival:
    try:
        return arrival(guid, event, body)
    except PayloadError as error:
        raise HTTPException(HTTPStatus.BAD_REQUEST, str(error)) from error


async def _receive(inbox: Inbox, waker: Waker, found: Arrival) -> JSONResponse:
    """Store one delivery, then wake a worker. Nothing else happens before GitHub has its answer."""
    with root_span("webhook", found.guid, event=found.event):
        try:
            delivery_id = await asyncio.wrap_future(inbox.put(found))
        except SQLAlchemyError as error:
            _log.exception("webhook.not_stored", guid=found.guid)
            # GitHub keeps what was not acknowledged: it can be delivered again.
            raise HTTPException(HTTPStatus.SERVICE_UNAVAILABLE, "The delivery could not be stored.") from error
        if delivery_id is None:
            return JSONResponse({"status": "duplicate"}, HTTPStatus.ACCEPTED)
        waker.wake_for(delivery_id)
        return JSONResponse({"status": "accepted"}, HTTPStatus.ACCEPTED)


async def _read(request: Request, limit: int) -> bytes:
    """Return the body, given up as soon as it is larger than `limit` bytes."""
    announced = request.headers.get("Content-Length", "")
    too_large = HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"The body is larger than {limit} bytes.")
    if announced.isdecimal() and int(announced) > limit:
        raise too_large
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > limit:
            raise too_large
    return bytes(body)


def _header(request: Request, name: str) -> str:
    value = request.headers.get(name, "")
    if not value:
        raise HTTPException(HTTPStatus.BAD_REQUEST, f"The {name} header is missing.")
    if not _NAME.fullmatch(value):
        raise HTTPException(HTTPStatus.BAD_REQUEST, f"The {name} header is not one of GitHub's.")
    return value


def _ask_database(database: Database) -> None:
    with database.engine.connect() as connection:
        connection.execute(text("SELECT 1"))
