"""The bot between a GitHub and its database: webhooks come in over HTTP, deliveries are handled when a test says so."""

import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import uvicorn
from sqlmodel import col, select

from bot.github import GitHubForge
from bot.handle import make_handler
from bot.web import create_app
from routing.pool import ModelPool, ModelSpec
from store.database import Database
from store.settings import Settings
from store.states import DeliveryState, TaskState
from store.tables import Delivery, Outcome, Task
from store.types import utc_now
from tests.support.github.server import GitHubServer
from tests.support.rows import QueueOfNames
from tests.support.services import free_port, wait_until
from workers.reports import repository_ref
from workers.runtime import Runtime

POOL = ModelPool(
    (
        ModelSpec(name="cheap", litellm_id="openai/cheap", input_usd_per_mtok=0.1, output_usd_per_mtok=0.4),
        ModelSpec(name="strong", litellm_id="openai/strong", input_usd_per_mtok=3.0, output_usd_per_mtok=15.0),
    )
)


class World:
    """One installation of acrouter whose tasks nobody works on."""

    def __init__(self, github: GitHubServer, settings: Settings, database: Database) -> None:
        self.github = github
        self.database = database
        self.queue = QueueOfNames()
        # Handlers ask nothing of the sandbox or the router.
        rest = SimpleNamespace(backend=None, brain=None)
        self.runtime = Runtime(
            settings=settings,
            database=database,
            queue=self.queue,
            forge=GitHubForge(settings),
            backend=cast("Runtime", rest).backend,
            pool=POOL,
            brain=cast("Runtime", rest).brain,
            name="test",
        )
        self.handle = make_handler(self.runtime)

    def settle(self) -> None:
        """Handle everything that GitHub has told so far, and what comes of that."""
        self.github.settle()
        while waiting := [row.id for row in self.deliveries() if self._is_due(row)]:
            for delivery_id in waiting:
                assert delivery_id is not None
                self.handle(delivery_id)
            self.github.settle()

    def deliveries(self, event: str = "") -> list[Delivery]:
        with self.database.session() as session:
            rows = session.exec(select(Delivery).order_by(col(Delivery.id))).all()
        return [row for row in rows if event in ("", row.event)]

    def tasks(self) -> list[Task]:
        with self.database.session() as session:
            return list(session.exec(select(Task).order_by(col(Task.id))).all())

    def outcomes(self) -> list[Outcome]:
        with self.database.session() as session:
            return list(session.exec(select(Outcome).order_by(col(Outcome.id))).all())

    def reasons(self, event: str) -> list[str]:
        """Why deliveries of a kind were ignored, or what failed; empty for those that were handled."""
        return [row.reason for row in self.deliveries(event)]

    def publish(self, task_id: int, branch: str = "acrouter/task-1") -> int:
        """Do what the workers do at the end: push a branch, open its PR, and write that down."""
        head = self._push(task_id, branch)
        with self.database.session() as session:
            task = session.get_one(Task, task_id)
            task.branch, task.head_sha, task.state = branch, head, TaskState.PUBLISHED
            session.add(task)
        number = self.github.open_pull_request("Fix", head=branch, by="maintainer")
        with self.database.session() as session:
            task = session.get_one(Task, task_id)
            task.pr_number = number
            session.add(task)
        self.settle()
        return number

    def _push(self, task_id: int, branch: str) -> str:
        """Push with a token of the App's, over HTTP as git does it."""
        forge = self.runtime.forge
        assert forge is not None
        task = next(task for task in self.tasks() if task.id == task_id)
        remote = forge.git_remote(repository_ref(self.runtime, task.repository_id or 0), write=True)
        url = remote.url.replace("://", f"://{remote.username}:{remote.token}@")
        who = ["-c", "user.name=acrouter", "-c", "user.email=acrouter@example.com"]
        with tempfile.TemporaryDirectory() as folder:

            def git(*arguments: str) -> str:
                done = subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True, text=True)
                return done.stdout.strip()

            git("clone", "-q", url, ".")
            git("checkout", "-q", "-b", branch)
            (Path(folder) / "fix.txt").write_text(f"{task_id}\n")
            git("add", ".")
            git(*who, "commit", "-q", "-m", "Fix")
            git("push", "-q", "origin", branch)
            return git("rev-parse", "HEAD")

    def end(self, task_id: int, state: TaskState = TaskState.NO_FIX) -> None:
        """Let a task have ended."""
        with self.database.session() as session:
            task = session.get_one(Task, task_id)
            task.state = state
            session.add(task)

    def wait_no_longer(self) -> None:
        """Let the time that deliveries have to wait be over."""
        with self.database.session() as session:
            for row in session.exec(select(Delivery)).all():
                row.not_before = None
                session.add(row)

    @staticmethod
    def _is_due(row: Delivery) -> bool:
        return row.state is DeliveryState.RECEIVED and (row.not_before is None or row.not_before <= utc_now())


@contextmanager
def running_world(github: GitHubServer, settings: Settings, database: Database) -> Iterator[World]:
    """Yield a world whose web application takes GitHub's webhooks."""
    world = World(github, settings, database)
    port = free_port()
    app = create_app(settings, database, world.queue)
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=port, log_level="warning"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    wait_until(lambda: server.started, what="the web application")
    github.webhook_url = f"http://127.0.0.1:{port}/webhooks/github"
    try:
        yield world
    finally:
        github.settle()
        server.should_exit = True
        thread.join(10)
