"""The HTTP side: webhooks come in, are stored and acknowledged; the work is done elsewhere. And the dashboard."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any

import structlog
import uvicorn
from fastapi import FastAPI, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse, RedirectResponse, Response
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from bot.dashboard.app import add_dashboard
from bot.github_app.needs import WEBHOOK_PATH
from bot.ingest.group_commit import Ingest
from bot.webhooks import WebhookGate
from store.database import Database
from store.errors import ConfigurationError
from store.settings import Settings
from workers.ports import Queue

_log = structlog.get_logger(__name__)


class Application(FastAPI):
    """The pages and the API; webhooks pass by all of its layers.

    Who is asked is told by the proxy in front of it, where that is the host's own (`FORWARDED_ALLOW_IPS`, as uvicorn
    has it). Webhooks are not asked that either.
    """

    def __init__(self, gate: WebhookGate, **options: Any) -> None:
        super().__init__(**options)
        self._gate = gate
        trusted = os.environ.get("FORWARDED_ALLOW_IPS", "127.0.0.1,::1")
        self._behind_proxy: ASGIApp = ProxyHeadersMiddleware(super().__call__, trusted)  # type: ignore[arg-type,assignment]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] == WEBHOOK_PATH:
            await self._gate(scope, receive, send)
        else:
            await self._behind_proxy(scope, receive, send)


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
    ingest = Ingest(database, queue.deliver)

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        ingest.start()
        yield
        await ingest.close()

    gate = WebhookGate(secret=secret, max_body_bytes=settings.max_body_bytes, ingest=ingest)
    app = Application(gate, title="acrouter", docs_url=None, redoc_url=None, openapi_url=None, lifespan=lifespan)

    @app.get("/")
    async def root(request: Request) -> Response:
        if "text/html" in request.headers.get("Accept", ""):
            return RedirectResponse("/overview", HTTPStatus.SEE_OTHER)
        return JSONResponse({"name": "acrouter", "status": "ok", "webhooks": WEBHOOK_PATH, "health": "/healthz"})

    @app.get("/healthz")
    async def health() -> JSONResponse:
        try:
            await run_in_threadpool(_ask_database, database)
        except SQLAlchemyError as error:
            _log.warning("health.database", error=type(error).__name__)
            return JSONResponse({"status": "failing", "database": "unreachable"}, HTTPStatus.SERVICE_UNAVAILABLE)
        return JSONResponse({"status": "ok", "database": "ok"})

    add_dashboard(app, settings, database, queue)
    return app


def server_config(app: FastAPI, host: str = "127.0.0.1", port: int = 0) -> uvicorn.Config:
    """Return how a process serves the application.

    uvicorn writes no log of requests: a delivery is a row, a change is in the audit log, and the path of a sign-in link
    is a secret.
    """
    return uvicorn.Config(
        app, host=host, port=port, log_config=None, access_log=False, timeout_graceful_shutdown=10, proxy_headers=False
    )


def _ask_database(database: Database) -> None:
    with database.reading() as session:  # it waits for no writer
        session.execute(text("SELECT 1"))
