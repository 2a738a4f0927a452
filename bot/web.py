"""The HTTP side: webhooks come in, are stored and acknowledged; the work is done elsewhere. And the dashboard."""

import re
from http import HTTPStatus

import structlog
from fastapi import FastAPI, HTTPException, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse, RedirectResponse, Response
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError

from bot.dashboard.app import add_dashboard
from bot.errors import PayloadError, SignatureError
from bot.inbox import store_delivery
from bot.signature import verify
from store.database import Database
from store.errors import ConfigurationError
from store.settings import Settings
from store.tracing import root_span
from workers.ports import Queue

_log = structlog.get_logger(__name__)
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
    app = FastAPI(title="acrouter", docs_url=None, redoc_url=None, openapi_url=None)

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

    @app.post("/webhooks/github")
    async def webhook(request: Request) -> JSONResponse:
        guid = _header(request, "X-GitHub-Delivery")
        event = _header(request, "X-GitHub-Event")
        body = await _read(request, settings.max_body_bytes)
        signature = request.headers.get("X-Hub-Signature-256")
        await run_in_threadpool(_check, body, signature, secret)
        return await run_in_threadpool(_receive, database, queue, guid, event, body)

    add_dashboard(app, settings, database, queue)
    return app


def _check(body: bytes, signature: str | None, secret: str) -> None:
    try:
        verify(body, signature, secret)
    except SignatureError as error:
        raise HTTPException(HTTPStatus.UNAUTHORIZED, str(error)) from error


def _receive(database: Database, queue: Queue, guid: str, event: str, body: bytes) -> JSONResponse:
    """Store one delivery, then wake a worker. Nothing else happens before GitHub has its answer."""
    with root_span("webhook", guid, event=event):
        return _store(database, queue, guid, event, body)


def _store(database: Database, queue: Queue, guid: str, event: str, body: bytes) -> JSONResponse:
    try:
        delivery_id = store_delivery(database, guid, event, body)
    except PayloadError as error:
        raise HTTPException(HTTPStatus.BAD_REQUEST, str(error)) from error
    except SQLAlchemyError as error:
        _log.exception("webhook.not_stored", guid=guid)
        # GitHub keeps what was not acknowledged: it can be delivered again.
        raise HTTPException(HTTPStatus.SERVICE_UNAVAILABLE, "The delivery could not be stored.") from error
    if delivery_id is None:
        return JSONResponse({"status": "duplicate"}, HTTPStatus.ACCEPTED)
    try:
        queue.deliver(delivery_id)
    except Exception:  # noqa: BLE001  (each broker has its own)
        # It is stored: the reconciler finds it.
        _log.exception("webhook.queue_unreachable", guid=guid)
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
