"""Puts a process together from its settings: the one place that knows every room."""

import hashlib
import os
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

import structlog

from bot.github.forge import GitHubForge
from bot.model_keys import require_a_key
from sandbox.types import Backend
from store import migrations
from store.data_dir import make_data_dir
from store.database import Database
from store.errors import ConfigurationError
from store.settings import Settings
from store.suggest import did_you_mean
from workers.ports import Forge, Queue

if TYPE_CHECKING:  # the web part does not work itself, and starts without the worker's heavy parts
    from workers.jobs import WorkerJobs
    from workers.runtime import Runtime

_log = structlog.get_logger(__name__)


def open_database(settings: Settings) -> Database:
    """Open the database and bring its schema up to date.

    Raises:
        ConfigurationError: it cannot be opened.
    """
    with suppress(OSError):  # what needs it names what is wrong
        make_data_dir(settings.data_dir)
    database = Database(settings.resolved_database_url)
    database.require_reachable()
    migrations.upgrade(database)
    return database


def require_github(settings: Settings) -> Forge:
    """Return GitHub as the workers want it.

    Raises:
        ConfigurationError: a credential of the App is missing, the message names all that are; or its key is none.
    """
    missing = [
        name
        for name, there in (
            ("ACROUTER_GITHUB_APP_ID", settings.github_app_id),
            ("ACROUTER_GITHUB_PRIVATE_KEY or _FILE", settings.secret("github_private_key")),
            ("ACROUTER_GITHUB_WEBHOOK_SECRET or _FILE", settings.secret("github_webhook_secret")),
        )
        if not there
    ]
    if missing:
        raise ConfigurationError(
            f"The GitHub App's credentials are incomplete: set {', '.join(missing)}. docs/setup.md shows where they "
            "come from; `acrouter demo` and `acrouter solve` need none."
        )
    return GitHubForge(settings)


def make_backend(settings: Settings) -> Backend:
    """Return the sandbox that this machine offers."""
    from sandbox.backends import choose_backend
    from workers.context import sandbox_limits

    return choose_backend(
        settings.sandbox,
        base_image=settings.sandbox_image,
        data_dir=settings.data_dir,
        limits=sandbox_limits(settings),
        instance=instance_name(settings),
        runtime=settings.sandbox_runtime,
        packages=settings.sandbox_packages.split(),
    )


def make_runtime(settings: Settings, database: Database, queue: Queue, forge: Forge | None) -> "Runtime":
    """Put together what one worker process works with.

    Raises:
        ConfigurationError: the pool, or a setting that names one of its models, is wrong, or none of them has its key.
    """
    from routing import Router
    from workers.brain import Brain
    from workers.runtime import Runtime

    router = Router.from_settings(settings)
    if settings.judge_model and settings.judge_model not in router.pool.names:
        raise ConfigurationError(
            f"ACROUTER_JUDGE_MODEL: there is no model '{settings.judge_model}' in the pool."
            + did_you_mean(settings.judge_model, router.pool.names)
        )
    if forge is not None:  # without one, a person waits for one task, which may ask for one model alone
        require_a_key(router.pool)
    return Runtime(
        settings=settings,
        database=database,
        queue=queue,
        forge=forge,
        backend=make_backend(settings),
        pool=router.pool,
        brain=Brain(router, database, settings.memory_capacity),
        name=f"{socket.gethostname()}-{os.getpid()}",
    )


def make_jobs(runtime: "Runtime") -> "WorkerJobs":
    """Return the jobs of a worker process.

    The agent's libraries take seconds to import. That is done here, so that no task waits for it.
    """
    from bot.dashboard.digest import WeeklyDigest
    from bot.handle import make_handler
    from bot.sweep import sweep_deliveries
    from workers.caches import evict_caches
    from workers.jobs import WorkerJobs
    from workers.old_deliveries import forget_old_deliveries
    from workers.reencoding import Reencoding
    from workers.runtime import Worker

    import_module("sandbox.agent.loop")
    chores: list[Callable[[], object]] = [
        partial(sweep_deliveries, runtime),
        partial(evict_caches, runtime),
        partial(forget_old_deliveries, runtime),
        Reencoding(runtime.database, runtime.brain.router.encoder),
    ]
    if runtime.settings.digest_issue:
        chores.append(WeeklyDigest(runtime))
    return WorkerJobs(Worker(runtime, make_handler(runtime), chores))


class Ticker:
    """Runs the reconciler now and then in a thread of this process, where no beat does."""

    def __init__(self, jobs: "WorkerJobs", every_s: float) -> None:
        self._jobs = jobs
        self._every_s = every_s
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="reconciler", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        self._thread.join(timeout=30)

    def _run(self) -> None:
        while True:
            try:
                self._jobs.reconcile()
            except Exception:  # noqa: BLE001  (the next round may do better)
                _log.exception("reconcile.failed")
            if self._ended.wait(self._every_s):
                return


def instance_name(settings: Settings) -> str:
    """Return what names this installation on its machine: two of them never touch each other's sandboxes."""
    return hashlib.sha256(settings.resolved_database_url.encode()).hexdigest()[:12]
