"""One whole run against acrouter's local GitHub, in this process: a label, the work, a PR, its end, all the words.

Every call that leaves goes over a transport that can fail one of them. What stands between acrouter and GitHub is real
(PyGithub, the client, the Forge, git); the model's work is not: an attempt with its verdict is there already, as after
a worker that died at that point.
"""

import asyncio
import io
import os
import subprocess
import tarfile
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Literal, cast
from unittest.mock import patch
from urllib.parse import unquote, urlsplit

import requests
from pydantic import SecretStr
from requests.adapters import HTTPAdapter
from sqlalchemy import event
from sqlmodel import select

from bot.demo.hub.server import LocalHub
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
from tests.support.forge import NoSandboxes, make_runtime
from tests.support.github.server import new_private_key
from tests.support.rows import settings
from workers.pipeline import work_on
from workers.reconciler import reconcile

REPOSITORY = "acme/shop"
APP_ID = 77
Kind = Literal["401", "403 secondary", "404", "409", "422", "500", "502", "reset", "time-out after the work"]
KINDS: tuple[Kind, ...] = (
    "401",
    "403 secondary",
    "404",
    "409",
    "422",
    "500",
    "502",
    "reset",
    "time-out after the work",
)
_MESSAGES = {
    "401": "Bad credentials",
    "403": "You have exceeded a secondary rate limit. Please wait a few minutes before you try again.",
    "404": "Not Found",
    "409": "Conflict",
    "422": "Validation Failed",
    "500": "Server Error",
    "502": "Server Error",
}
_PATCH = """diff --git a/cart.py b/cart.py
--- a/cart.py
+++ b/cart.py
@@ -1,2 +1,2 @@
 def total(prices):
-    return sum(prices[1:])
+    return sum(prices)
"""


@dataclass(frozen=True)
class Call:
    """A call by what it is about, without numbers and SHAs."""

    method: str
    path: str

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


@dataclass
class Wire:
    """Carries requests to a web application in this process; the `fail_at`-th call (from 0) fails once."""

    app: Any
    loop: asyncio.AbstractEventLoop
    fail_at: int | None = None
    kind: Kind = "500"
    calls: list[Call] = field(default_factory=list)

    def send(self, request: requests.PreparedRequest, **_: object) -> requests.Response:
        parts = urlsplit(request.url or "")
        number = len(self.calls)
        self.calls.append(Call(request.method or "", _plain(parts.path)))
        if number != self.fail_at:
            return self._answer(request, parts.path, parts.query)
        if self.kind == "reset":
            raise requests.ConnectionError("Connection reset by peer")
        if self.kind == "time-out after the work":
            self._answer(request, parts.path, parts.query)
            raise requests.ReadTimeout("Read timed out.")
        status = self.kind[:3]
        headers = {"Retry-After": "1"} if self.kind == "403 secondary" else {}
        return _response(request, int(status), headers, f'{{"message": "{_MESSAGES[status]}"}}'.encode())

    def _answer(self, request: requests.PreparedRequest, path: str, query: str) -> requests.Response:
        body = request.body or b""
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": request.method,
            "scheme": "http",
            "path": unquote(path),
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": [(name.lower().encode(), str(value).encode()) for name, value in request.headers.items()],
            "client": ("127.0.0.1", 1),
            "server": ("localhost", 80),
        }
        content = body.encode() if isinstance(body, str) else bytes(body)
        status, headers, answer = asyncio.run_coroutine_threadsafe(_ask(self.app, scope, content), self.loop).result(30)
        return _response(request, status, headers, answer)


async def _ask(app: Any, scope: dict[str, Any], body: bytes) -> tuple[int, dict[str, str], bytes]:
    status, headers, answer = 0, {}, bytearray()

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        nonlocal status
        if message["type"] == "http.response.start":
            status = message["status"]
            headers.update({name.decode(): value.decode() for name, value in message["headers"]})
        answer.extend(message.get("body", b""))

    await app(scope, receive, send)
    return status, headers, bytes(answer)


def _response(
    request: requests.PreparedRequest, status: int, headers: dict[str, str], content: bytes
) -> requests.Response:
    response = requests.Response()
    response.status_code = status
    response.headers.update({"Content-Type": "application/json", **headers})
    response.raw = io.BytesIO(content)
    response._content = content
    response.request = request
    response.url = request.url or ""
    return response


def _plain(path: str) -> str:
    parts = path.strip("/").split("/")
    if parts[:1] == ["repos"]:
        parts[1:3] = ["REPO"]
    named = [_name(part, before) for before, part in zip(["", *parts], parts, strict=False)]
    return "/" + "/".join(named)


def _name(part: str, before: str) -> str:
    if part.isdecimal():
        return "N"
    if len(part) == 40 and all(c in "0123456789abcdef" for c in part):
        return "SHA"
    if before in ("branches", "labels", "users", "collaborators"):
        return "NAME"
    return part


class LocalMirror(Mirror):
    """Fetches and pushes by path: git over HTTP is not what fails here."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, allow_local=True)


class QuickMirror:
    """Commits and pushes in the hosted repository itself, by two short commands instead of ten."""

    bare: Path
    made: ClassVar[dict[tuple[str, str], str]] = {}

    def __init__(self, _folder: Path) -> None:
        pass

    def has(self, _sha: str) -> bool:
        return True

    def archive(self, _sha: str, destination: Path) -> None:
        with tarfile.open(destination, "w"):
            pass

    def tree_with_patch(self, base_sha: str, _patch: str) -> str:
        return f"{base_sha}^{{tree}}"

    def commit(self, tree: str, parent: str, message: str, _author: object, when: datetime) -> str:
        key = (message, when.isoformat())
        if key not in self.made:
            who = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a"}
            environment = {**os.environ, **who, "GIT_COMMITTER_EMAIL": "a@b", "GIT_COMMITTER_DATE": when.isoformat()}
            self.made[key] = self._git("commit-tree", tree, "-p", parent, "-m", message, env=environment)
        return self.made[key]

    def remote_head(self, _remote: object, branch: str) -> str | None:
        path = self.bare / "refs" / "heads" / branch
        return path.read_text().strip() if path.is_file() else None

    def push(self, _remote: object, sha: str, branch: str, *, expected: str | None) -> None:
        self._git("update-ref", f"refs/heads/{branch}", sha, expected or "0" * 40)

    def _git(self, *arguments: str, env: dict[str, str] | None = None) -> str:
        return subprocess.check_output(["git", *arguments], cwd=self.bare, env=env, text=True).strip()


class WholeRun:
    """One GitHub, one acrouter; each `run` has an issue of its own."""

    def __init__(self, folder: Path, *, real_git: bool = False, default_branch: str = "main") -> None:
        """`real_git`: work through a mirror of its own, as outside tests; slower."""
        key = _private_key()
        self.hub = LocalHub(0, None, "secret", APP_ID, key)
        self.hub._sender.start()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.wire = Wire(self.hub.app, self._loop)
        self.hub.create_repository(REPOSITORY, _shop(folder, default_branch))
        bare = Path(self.hub._folder.name)
        QuickMirror.bare = bare / f"{REPOSITORY}.git"
        self._mirror = LocalMirror if real_git else QuickMirror
        self._heard = 0
        self.database = Database(f"sqlite:///{folder / 'acrouter.sqlite3'}")
        event.listen(self.database.engine, "connect", _no_waiting_for_the_disk)
        migrations.upgrade(self.database)
        options = settings(
            data_dir=folder / "data",
            github_app_id=APP_ID,
            github_private_key=SecretStr(key),
            github_webhook_secret=SecretStr("secret"),
            github_api_url=self.hub.base_url,
            github_web_url=str(bare),
            github_write_pause_s=0.0,
            max_tasks_per_target=50,
            day_budget_usd=1000.0,
        )
        self.forge = GitHubForge(options)
        base = make_runtime(self.database, options)
        self.runtime = replace(base, forge=self.forge, backend=cast("Backend", NoSandboxes()))

    def close(self) -> None:
        self.hub.stop()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()
        self.database.dispose()

    def run(self, kind: Kind = "500", fail_at: int | None = None) -> "Ending":
        """Label a new issue and bring everything to rest, time passing as it needs; then close the PR, and again."""
        # The App's own memory is as after a start: each run makes the same calls.
        clients = self.forge._clients
        clients._tokens.clear()
        clients._login, clients._author = "", None
        clients._own = threading.local()
        self.wire.calls, self.wire.kind, self.wire.fail_at = [], kind, fail_at
        with _over(self.wire, self._mirror):
            issue = self.hub.open_issue("The total is wrong", "It leaves the first price out.")
            self.hub.label(issue, "acrouter")
            self.settle()
            pulls = self._pulls(issue)
            if pulls:
                self.hub.close(pulls[0]["number"])
                self.settle()
        return self._ending(issue)

    @contextmanager
    def connected(self) -> Iterator[None]:
        """Let everything within speak to the local GitHub, for stories of a test's own."""
        self.wire.calls, self.wire.fail_at = [], None
        with _over(self.wire, self._mirror):
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
                return
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

    def _pulls(self, issue: int) -> list[dict[str, Any]]:
        return [pull for pull in self.hub.pull_requests() if f"-{issue}-" in pull["head"]["ref"]]

    def _ending(self, issue: int) -> "Ending":
        with self.database.session() as session:
            tasks = session.exec(select(Task).where(Task.target_number == issue)).all()
        comments = [comment["body"] for comment in self.hub.comments(issue)]
        shas = {task.head_sha for task in tasks if task.head_sha}
        return Ending(
            tasks=[task.state for task in tasks],
            pulls=len(self._pulls(issue)),
            status_comments=sum("acrouter:task=" in body for body in comments),
            check_runs=sum(len(self.hub.check_runs(sha)) for sha in shas),
            words="\n".join(comments),
            labels=self.hub.labels(issue),
            calls=list(self.wire.calls),
        )


@dataclass(frozen=True)
class Ending:
    """What is left on an issue."""

    tasks: list[TaskState]
    pulls: int
    status_comments: int
    check_runs: int
    words: str
    labels: set[str]
    calls: list[Call]

    def summary(self) -> str:
        """One word for how it ended: the task's state, or that the words are a refusal."""
        return ", ".join(state.value for state in self.tasks) or "answered"

    def faults(self) -> list[str]:
        """Return what is not as it must be, whatever failed."""
        found = []
        for what, number in (
            ("PRs", self.pulls),
            ("status comments", self.status_comments),
            ("tasks", len(self.tasks)),
        ):
            if number > 1:
                found.append(f"{number} {what}")
        if self.check_runs > 1:
            found.append(f"{self.check_runs} check runs")
        if any(state.is_open for state in self.tasks):
            found.append("a task is open still")
        if not self.words:
            found.append("no words on the target")
        return found + [f"{state} is not told" for state in self.tasks if _WORDS[state] not in self.words]


_WORDS = {
    TaskState.MERGED: "Merged",
    TaskState.STOPPED: "Stopped",
    TaskState.FAILED: "Failed",
    TaskState.REFUSED: "Not started",
    TaskState.NO_FIX: "No fix found",
    TaskState.PUBLISHED: "Pull request opened",
    TaskState.CLOSED: "Pull request closed",
    **{state: "" for state in TaskState if state.is_open},
}
_CART = "def total(prices):\n    return sum(prices[1:])\n"
_private_key = cache(new_private_key)


@contextmanager
def _over(wire: Wire, mirror: type) -> Iterator[None]:
    with (
        patch.object(HTTPAdapter, "send", lambda _self, request, **options: wire.send(request, **options)),
        patch("workers.forge_target.Mirror", mirror),
    ):
        yield


def _no_waiting_for_the_disk(connection: Any, _record: Any) -> None:
    connection.execute("PRAGMA synchronous=OFF")


def _shop(folder: Path, branch: str) -> Path:
    source = Path(tempfile.mkdtemp(dir=folder))
    (source / "cart.py").write_text(_CART)
    who = ["-c", "user.name=Ada", "-c", "user.email=ada@example.com"]
    for arguments in (["init", "-q", "-b", branch], ["add", "."], [*who, "commit", "-q", "-m", "Begin"]):
        subprocess.run(["git", *arguments], cwd=source, check=True)
    return source
