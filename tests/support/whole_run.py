"""One whole run against acrouter's local GitHub, in this process: words, the work, a PR, its end, all the words.

Every call that leaves goes over a wire that can fail one of them. What stands between acrouter and GitHub is real
(PyGithub, the client, the Forge, git); the model's work is not: an attempt with its verdict is there already, as after
a worker that died at that point.
"""

import asyncio
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any, Literal, cast
from unittest.mock import patch

from pydantic import SecretStr
from sqlalchemy import event
from sqlmodel import select

from bot.demo.hub.server import PERMISSIONS, LocalHub
from bot.demo.hub.state import Issue, Pull
from bot.github import GitHubForge
from bot.handle import handle_delivery
from bot.inbox import store_delivery
from sandbox.checkout import Mirror
from sandbox.types import Backend
from store import migrations
from store.database import Database
from store.states import AttemptState, DeliveryState, TaskState
from store.tables import Attempt, Decision, Delivery, Task, Verification
from store.types import utc_now
from tests.support.ending import Ending
from tests.support.faulty_git import GitKind, GitServer
from tests.support.faulty_wire import Kind, Wire
from tests.support.forge import NoSandboxes, make_runtime
from tests.support.github.server import new_private_key
from tests.support.quick_mirror import LocalMirror, QuickMirror
from tests.support.rows import settings
from tests.support.run_stories import ISSUE, Story
from workers.pipeline import work_on
from workers.reconciler import reconcile

REPOSITORY = "acme/shop"
APP_ID = 77
_PATCH = """diff --git a/cart.py b/cart.py
--- a/cart.py
+++ b/cart.py
@@ -1,2 +1,2 @@
 def total(prices):
-    return sum(prices[1:])
+    return sum(prices)
"""


class WholeRun:
    """One GitHub, one acrouter; each `run` has a target of its own."""

    def __init__(
        self,
        folder: Path,
        story: Story = ISSUE,
        *,
        git: Literal["quick", "path", "http"] = "quick",
        default_branch: str = "main",
        database: Database | None = None,
    ) -> None:
        """`git`: how commits come and go; by `path` and over `http` through a mirror, as outside tests, but slower.

        `database` is migrated and stays open; None: one of its own on SQLite.
        """
        self.story = story
        key = _private_key()
        self.hub = LocalHub(0, None, "secret", APP_ID, key, permissions={**PERMISSIONS, "actions": "write"})
        self.hub._sender.start()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.wire = Wire(self.hub.app, self._loop)
        self.hub.create_repository(REPOSITORY, _shop(folder, default_branch, story.config))
        self.git = GitServer(self.hub.app) if git == "http" else None
        self._mirror = {"quick": QuickMirror, "path": LocalMirror, "http": Mirror}[git]
        self._heard = 0
        self._own_database = database is None
        self.database = database or _database(folder)
        options = settings(
            data_dir=folder / "data",
            github_app_id=APP_ID,
            github_private_key=SecretStr(key),
            github_webhook_secret=SecretStr("secret"),
            github_api_url=self.hub.base_url,
            github_web_url=self.git.url if self.git else self.hub._folder.name,
            github_write_pause_s=0.0,
            max_tasks_per_target=50,
            day_budget_usd=1000.0,
        )
        self.forge = GitHubForge(options)
        base = make_runtime(self.database, options)
        self.runtime = replace(base, forge=self.forge, backend=cast("Backend", NoSandboxes()))

    def close(self) -> None:
        if self.git:
            self.git.stop()
        self.hub.stop()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()
        if self._own_database:
            self.database.dispose()

    def run(self, kind: Kind = "500", fail_at: int | None = None) -> Ending:
        """Let the story begin and bring everything to rest, time passing as it needs; then close the PR, and again."""
        # The App's own memory is as after a start: each run makes the same calls.
        clients = self.forge._clients
        clients._tokens.clear()
        clients._login, clients._author = "", None
        clients._own = threading.local()
        with self.connected():
            self.wire.fail(kind, fail_at)
            number = self.story.begin(self.hub)
            self.settle()
            opened = self._pulls(number)
            if opened or self._under_repair(number):
                self.hub.close(opened[0].number if opened else number)
                self.settle()
        return self._ending(number)

    def run_over_git(self, kind: GitKind = "500", fail_at: int | None = None) -> Ending:
        """The same, where a request of git's fails, and nothing was fetched before."""
        assert self.git is not None
        shutil.rmtree(self.runtime.mirrors_dir, ignore_errors=True)
        self.git.faults.fail(kind, fail_at)
        return replace(self.run(), calls=self.git.faults.calls)

    @contextmanager
    def connected(self) -> Iterator[None]:
        """Let everything within speak to the local GitHub, for stories of a test's own."""
        QuickMirror.hub = self.hub
        self.wire.fail("500", None)
        with self.wire.connected(), patch("workers.forge_target.Mirror", self._mirror):
            yield

    def hear(self) -> None:
        """Handle what GitHub has told so far; nobody works on the tasks yet."""
        deliveries = self.hub.deliveries
        for delivery in deliveries[self._heard :]:
            store_delivery(self.database, delivery.guid, delivery.event, delivery.body)
        self._heard = len(deliveries)
        self._handle()

    def settle(self) -> None:
        """Hear and work until there is nothing left to do, time passing as it needs."""
        self.hear()
        for _ in range(12):
            self._pass_time()
            self._handle()
            with self.database.session() as session:
                queued = session.exec(select(Task.id).where(Task.state == TaskState.QUEUED)).all()
            for task_id in queued:
                self._give_attempt(cast("int", task_id))
                work_on(self.runtime, cast("int", task_id))
            self._pass_time()
            reconcile(self.runtime)
            if not self._is_restless():
                if self._heard == len(self.hub.deliveries):
                    return
                self.hear()  # what we did ourselves has been told, too
        raise AssertionError("there is no end to it")

    def _handle(self) -> None:
        with self.database.session() as session:
            waiting = session.exec(select(Delivery.id).where(Delivery.state == DeliveryState.RECEIVED)).all()
        for delivery_id in waiting:
            handle_delivery(self.runtime, cast("int", delivery_id))

    def _is_restless(self) -> bool:
        with self.database.session() as session:
            return (
                session.exec(select(Delivery.id).where(Delivery.state == DeliveryState.RECEIVED)).first() is not None
                or session.exec(select(Task.id).where(Task.report_due)).first() is not None
                or session.exec(select(Task.id).where(Task.state == TaskState.QUEUED)).first() is not None
            )

    def _pass_time(self) -> None:
        past = utc_now() - timedelta(hours=1)
        with self.database.session() as session:
            for row in session.exec(select(Delivery).where(Delivery.state == DeliveryState.RECEIVED)).all():
                session.add(row.sqlmodel_update({"not_before": None, "received_at": past}))
            for task in session.exec(select(Task).where(Task.report_due | (Task.state == TaskState.QUEUED))).all():
                session.add(task.sqlmodel_update({"not_before": None, "report_not_before": None, "updated_at": past}))

    def pass_hours(self, task: Task, hours: float) -> None:
        """Let a task's wait in the queue be over, and so much longer."""
        with self.database.session() as session:
            row = session.get_one(Task, task.id)
            assert row.waiting_since is not None
            row.waiting_since -= timedelta(hours=hours)
            row.not_before = None
            session.add(row)

    def _give_attempt(self, task_id: int) -> None:
        with self.database.session() as session:
            if session.exec(select(Attempt.id).where(Attempt.task_id == task_id)).first() is not None:
                return
            decision = Decision(task_id=task_id, chosen="small", propensity=1.0)
            session.add(decision)
            session.flush()
            attempt = Attempt(
                task_id=task_id,
                decision_id=cast("int", decision.id),
                number=1,
                model="small",
                state=AttemptState.VERIFIED,
                exit_status="Submitted",
                patch=_PATCH,
                score=0.9,
                finished_at=utc_now(),
            )
            session.add(attempt)
            session.flush()
            session.add(
                Verification(
                    attempt_id=cast("int", attempt.id),
                    score=0.9,
                    verdict="verified",
                    summary="A test failed before and passes now.",
                    tests={"command": "pytest", "before": None, "after": None, "fail_to_pass": [], "pass_to_fail": []},
                )
            )

    def _pulls(self, number: int) -> list[Issue]:
        """The PRs that acrouter opened about an issue or a PR."""
        pulls = self.hub._repository("").pulls()
        return [issue for issue in pulls if issue.pull and f"-{number}-task-" in issue.pull.head_ref]

    def _under_repair(self, number: int) -> Pull | None:
        return self.hub._repository("").issues[number].pull

    def _checks_of(self, tasks: Sequence[Task]) -> list[Any]:
        external_ids = {f"acrouter-task-{task.id}" for task in tasks}
        checks = self.hub._repository("").check_runs.values()
        return [check for check in checks if check.external_id in external_ids]

    def _ending(self, number: int) -> Ending:
        with self.database.session() as session:
            tasks = session.exec(select(Task).where(Task.target_number == number)).all()
        comments = [comment["body"] for comment in self.hub.comments(number)]
        shas = {task.head_sha for task in tasks if task.head_sha}
        under_repair = self._under_repair(number)
        return Ending(
            tasks=[task.state for task in tasks],
            pulls=len(self._pulls(number)),
            status_comments=sum("acrouter:task=" in body for body in comments),
            check_runs=len(self._checks_of(tasks)),
            commits=int(under_repair is not None and under_repair.head_sha in shas),
            words="\n".join(comments),
            labels=self.hub.labels(number),
            calls=list(self.wire.calls),
        )


_CART = "def total(prices):\n    return sum(prices[1:])\n"
_private_key = cache(new_private_key)


def _database(folder: Path) -> Database:
    database = Database(f"sqlite:///{folder / 'acrouter.sqlite3'}")
    event.listen(database.engine, "connect", _no_waiting_for_the_disk)
    migrations.upgrade(database)
    return database


def _no_waiting_for_the_disk(connection: Any, _record: Any) -> None:
    connection.execute("PRAGMA synchronous=OFF")


def _shop(folder: Path, branch: str, config: str) -> Path:
    source = Path(tempfile.mkdtemp(dir=folder))
    (source / "cart.py").write_text(_CART)
    if config:
        (source / ".acrouter.yml").write_text(config)
    who = ["-c", "user.name=Ada", "-c", "user.email=ada@example.com"]
    for arguments in (["init", "-q", "-b", branch], ["add", "."], [*who, "commit", "-q", "-m", "Begin"]):
        subprocess.run(["git", *arguments], cwd=source, check=True)
    return source
