"""`acrouter up`, `worker`, `beat` and `migrate`: the long-running processes."""

import logging
import os
import signal
import socket
import threading
from contextlib import suppress
from types import FrameType
from typing import TYPE_CHECKING

import structlog
import typer

from bot.listening import bound, listen
from store.errors import ConfigurationError
from store.logs import configure_logging
from store.settings import Settings, load_settings
from store.tracing import configure_tracing

if TYPE_CHECKING:
    from store.database import Database
    from workers.ports import Queue
    from workers.runtime import Runtime

_log = structlog.get_logger(__name__)


def up(
    host: str = typer.Option("", help="Address to listen on. Default: ACROUTER_HOST."),
    port: int = typer.Option(0, min=0, max=65_535, help="Port to listen on. Default: ACROUTER_PORT."),
) -> None:
    """Start the real thing: migrations, web, worker and scheduler in one process.

    With REDIS_URL set it is the web part alone; `acrouter worker` and `acrouter beat` run beside it.
    """
    settings = load_settings()
    configure_logging(settings)
    with bound(host or settings.host, port or settings.port) as listener:
        if settings.embedded:
            _up_embedded(settings, listener)
        else:
            _up_web(settings, listener)


def worker(
    concurrency: int = typer.Option(0, min=0, help="Tasks to work on at once. Default: ACROUTER_CONCURRENCY."),
) -> None:
    """Work on tasks from the queue (needs REDIS_URL and a shared DATABASE_URL)."""
    from bot.assembly import make_jobs, make_runtime, open_database, require_github
    from workers.celery_app import WAKE_QUEUE, CeleryQueue, make_celery, use

    settings = _with_broker()
    configure_logging(settings)
    configure_tracing(settings, "worker")
    forge = require_github(settings)
    database = open_database(settings)
    app = make_celery(settings.redis_url, settings.reconcile_every_s)
    runtime = make_runtime(settings, database, CeleryQueue(app), forge)
    runtime.backend.ensure_base()
    tasks_at_once = concurrency or settings.concurrency
    use(make_jobs(runtime), tasks_at_once=tasks_at_once)
    # Threads: the work is waiting for containers, models and GitHub, and one router serves them all. One more than the
    # tasks, so that a delivery never waits for a task to end.
    try:
        app.worker_main(
            [
                "worker",
                "--pool=threads",
                f"--concurrency={tasks_at_once + 1}",
                "--without-gossip",
                "--without-mingle",
                f"--queues={WAKE_QUEUE}",
                f"--loglevel={settings.log_level}",
                f"--hostname={runtime.name}@%h",
            ]
        )
    finally:
        _forget(runtime)


def beat() -> None:
    """Send the scheduler's wake-ups (one process for the whole installation; a second one does no harm)."""
    from workers.celery_app import make_celery

    settings = _with_broker()
    configure_logging(settings)
    app = make_celery(settings.redis_url, settings.reconcile_every_s)
    # The schedule is one line of code: nothing of it needs to be kept in a file.
    app.Beat(loglevel=settings.log_level, scheduler_cls="celery.beat:Scheduler").run()


def migrate() -> None:
    """Bring the database's schema up to date."""
    from bot.assembly import open_database
    from store import migrations

    settings = load_settings()
    database = open_database(settings)
    typer.echo(f"The database is at revision {migrations.pending(database)[0]}.")


def _with_broker() -> Settings:
    settings = load_settings()
    if settings.embedded:
        raise ConfigurationError(
            "REDIS_URL is not set. Without a broker `acrouter up` does everything in one process; set REDIS_URL and "
            "DATABASE_URL to run workers beside it."
        )
    _require_database(settings)
    return settings


def _require_database(settings: Settings) -> None:
    if not settings.database_url:
        raise ConfigurationError("DATABASE_URL is not set. The web part and the workers need one database together.")


def _up_embedded(settings: Settings, listener: socket.socket) -> None:
    from bot.assembly import Ticker, make_jobs, make_runtime, open_database, require_github
    from workers.queues import LocalQueue
    from workers.shutdown import GRACE_S, hand_back

    forge = require_github(settings)
    database = open_database(settings)
    queue = LocalQueue(settings.concurrency)
    runtime = make_runtime(settings, database, queue, forge)
    _log.info("sandbox", backend=runtime.backend.name, note=runtime.backend.describe())
    runtime.backend.ensure_base(progress=lambda message: _log.info("sandbox.base", step=message))
    jobs = make_jobs(runtime)
    address = listen(listener)
    queue.start(jobs)
    ticker = Ticker(jobs, settings.reconcile_every_s)
    ticker.start()
    try:
        _serve(settings, database, queue, listener, address)
    finally:
        _log.info("process.ending")
        runtime.stopping.set()
        queue.close(GRACE_S)
        hand_back(runtime)
        ticker.stop()
        ended = queue.close(GRACE_S)
        _forget(runtime)
        database.dispose()
    if not ended:
        # A thread waits for a model. Its task is back in the queue; the interpreter would wait for the thread.
        logging.shutdown()
        os._exit(0)


def _forget(runtime: "Runtime") -> None:
    """Take this process out of those that are alive, or the dashboard would show it for a while more."""
    from sqlalchemy.exc import SQLAlchemyError
    from sqlmodel import col, delete

    from store.tables import Heartbeat

    with suppress(SQLAlchemyError), runtime.database.session() as session:  # a database that is down ends nothing worse
        session.exec(delete(Heartbeat).where(col(Heartbeat.name) == runtime.name))


def _up_web(settings: Settings, listener: socket.socket) -> None:
    from bot.assembly import open_database, require_github
    from workers.celery_app import CeleryQueue, make_celery

    _require_database(settings)
    require_github(settings)
    database = open_database(settings)
    app = make_celery(settings.redis_url, settings.reconcile_every_s)
    _serve(settings, database, CeleryQueue(app), listener, listen(listener))


def _serve(
    settings: Settings, database: "Database", queue: "Queue", listener: socket.socket, address: tuple[str, int]
) -> None:
    import uvicorn

    from bot.cli.look import link, local_url
    from bot.dashboard.sign_in import is_loopback
    from bot.dashboard.tokens import make_link_word
    from bot.web import create_app, server_config

    configure_tracing(settings, "web")
    app = create_app(settings, database, queue)
    host, port = address
    server = uvicorn.Server(server_config(app, host, port))

    def stop(_number: int, _frame: FrameType | None) -> None:
        server.should_exit = True

    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, stop)
    _log.info("listening", url=local_url(host, port), host=host)
    if settings.embedded and is_loopback(host):
        # For people, not for the log's collector: whoever reads it could sign in.
        typer.echo(f"Dashboard, once: {link(settings, host, port, make_link_word(database))}", err=True)
    server.run(sockets=[listener])
