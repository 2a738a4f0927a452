"""A whole installation of acrouter in processes of its own: web, workers, beat, on real Postgres and Redis."""

import hashlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import docker
import httpx
from sqlmodel import col, func, select

from store.database import Database
from store.states import TaskState
from store.tables import Attempt, Decision, Heartbeat, History, Ledger, MemoryEntry, Outcome, Task, Verification
from tests.support.forked import ForkedProcess
from tests.support.services import free_port, wait_until

ROOT = Path(__file__).resolve().parents[2]
WAIT_S = 300.0


class Process(Protocol):
    """What a story needs of `subprocess.Popen`. The process leads a group of its own."""

    @property
    def pid(self) -> int: ...

    def poll(self) -> int | None: ...

    def wait(self, timeout: float | None = None) -> int: ...

    def terminate(self) -> None: ...


def containers_of(database_url: str) -> list[str]:
    """Return the ids of the containers of the installation with this database, ended ones too."""
    instance = hashlib.sha256(database_url.encode()).hexdigest()[:12]
    found = docker.from_env().api.containers(all=True, filters={"label": f"acrouter.instance={instance}"})
    return [str(container["Id"]) for container in found]


@dataclass
class Installation:
    """Starts, kills and questions the processes of one installation."""

    folder: Path
    environment: dict[str, str]
    database: Database
    port: int = field(default_factory=free_port)
    forked: bool = True
    """Whether its processes are forked from one that has imported everything; else each is a `python -m bot`."""
    processes: dict[str, Process] = field(default_factory=dict)
    stories: int = 0
    earlier: int = 0
    """The newest task of earlier stories, by its id."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def webhook_url(self) -> str:
        return f"{self.url}/webhooks/github"

    def begin_story(self) -> int:
        """Count tasks from 1 again, those that are there belong to earlier stories; return the story's own number."""
        self.stories += 1
        with self.database.session() as session:
            self.earlier = session.exec(select(func.max(Task.id))).one() or 0
        return self.stories

    def start_web(self, timeout_s: float = 60) -> None:
        self._start("web", "up", "--host", "127.0.0.1", "--port", str(self.port))

        # One client: a new one for each question reads the machine's certificates again.
        with httpx.Client(base_url=self.url, timeout=2, trust_env=False) as client:

            def answers() -> bool:
                self._alive("web")
                try:
                    return client.get("/healthz").status_code == httpx.codes.OK
                except httpx.TransportError:
                    return False

            wait_until(answers, timeout_s, "acrouter's web part")

    def start_worker(self, name: str = "worker") -> None:
        self._start(name, "worker")

    def ensure_worker(self) -> None:
        """Start a worker where an earlier story left none."""
        if "worker" not in self.processes:
            self.start_worker()

    def without_worker(self) -> None:
        """End the worker that an earlier story left."""
        if "worker" in self.processes:
            self.stop("worker")

    def start_beat(self) -> None:
        self._start("beat", "beat")

    def kill(self, name: str) -> None:
        """End a process and its children by SIGKILL, as a crash would."""
        process = self.processes.pop(name)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(10)

    def stop(self, name: str, timeout_s: float = 60) -> int:
        """End a process by SIGTERM and return its exit code."""
        process = self.processes.pop(name)
        process.terminate()
        return process.wait(timeout_s)

    def close(self) -> None:
        for name in list(self.processes):
            self.kill(name)

    def logs(self) -> str:
        """Everything that the processes have printed."""
        return "\n".join(path.read_text(errors="replace") for path in sorted(self.folder.glob("*.log")))

    def last_words(self) -> str:
        """The end of the logs without the scheduler's routine."""
        lines = [line for line in self.logs().splitlines() if "acrouter.reconcile[" not in line]
        return "\n".join(lines[-60:])

    def workers(self) -> set[int]:
        """The ids of the processes that count as workers which are alive."""
        with self.database.session() as session:
            return {int(name.rpartition("-")[2]) for name in session.exec(select(Heartbeat.name))}

    def tasks(self) -> Sequence[Task]:
        """The tasks of this story."""
        with self.database.session() as session:
            return session.exec(select(Task).where(col(Task.id) > self.earlier).order_by(col(Task.id))).all()

    def task(self, number: int = 1) -> Task:
        """The `number`-th task of this story, the first being 1."""
        return self.tasks()[number - 1]

    def wait_for(self, ready: Callable[[], object], what: str, timeout_s: float = WAIT_S, every_s: float = 0.1) -> None:
        """Wait until `ready` is true; a failure tells what the processes printed.

        It is asked after each `every_s` seconds, which leaves the processor to those that are waited for.
        """
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            for name in self.processes:
                self._alive(name)
            if ready():
                return
            time.sleep(every_s)
        raise AssertionError(f"{what} did not happen within {timeout_s} s.\n{self._story()}\n{self.last_words()}")

    def wait_for_state(self, *states: TaskState, number: int = 1, timeout_s: float = WAIT_S) -> Task:
        """Wait until the `number`-th task is in one of `states` and has been reported, and return it."""

        def there() -> bool:
            tasks = self.tasks()
            return len(tasks) >= number and tasks[number - 1].state in states

        self.wait_for(there, f"task {number} in {' or '.join(states)}", timeout_s)
        return self.task(number)

    def wait_until_told(self, number: int = 1, timeout_s: float = WAIT_S) -> Task:
        """Wait until the task has ended, nobody holds it and its target has been told."""
        self.wait_for(
            lambda: (
                len(self.tasks()) >= number
                and not (task := self.task(number)).state.is_open
                and not task.report_due
                and not task.lease_owner
            ),
            f"the words on task {number}'s target",
            timeout_s,
        )
        return self.task(number)

    def history(self, number: int = 1) -> list[str]:
        task = self.task(number)
        with self.database.session() as session:
            rows = session.exec(select(History).where(History.task_id == task.id).order_by(col(History.id))).all()
        return [f"{row.state}: {row.message}" for row in rows]

    def attempts(self, number: int = 1) -> Sequence[Attempt]:
        task = self.task(number)
        with self.database.session() as session:
            return session.exec(select(Attempt).where(Attempt.task_id == task.id).order_by(col(Attempt.number))).all()

    def verification(self, attempt: Attempt) -> Verification:
        with self.database.session() as session:
            return session.exec(select(Verification).where(Verification.attempt_id == attempt.id)).one()

    def decisions(self, number: int = 1) -> Sequence[Decision]:
        task = self.task(number)
        with self.database.session() as session:
            return session.exec(select(Decision).where(Decision.task_id == task.id).order_by(col(Decision.id))).all()

    def outcomes(self, number: int = 1) -> Sequence[Outcome]:
        task = self.task(number)
        with self.database.session() as session:
            return session.exec(select(Outcome).where(Outcome.task_id == task.id).order_by(col(Outcome.id))).all()

    def memory(self) -> Sequence[MemoryEntry]:
        with self.database.session() as session:
            return session.exec(select(MemoryEntry).order_by(col(MemoryEntry.id))).all()

    def ledger(self) -> Sequence[Ledger]:
        with self.database.session() as session:
            return session.exec(select(Ledger).order_by(col(Ledger.id))).all()

    def containers(self) -> list[str]:
        """Return the ids of the installation's containers, ended ones too."""
        return containers_of(self.environment["DATABASE_URL"])

    def assert_the_ledger_adds_up(self) -> None:
        """Every reservation is closed exactly once, and what was spent is what the attempts cost."""
        rows = self.ledger()
        opened = [row.reservation for row in rows if not row.closing]
        closed = [row.reservation for row in rows if row.closing]
        assert sorted(opened) == sorted(closed)
        spent = sum(row.usd_micros for row in rows if row.closing) / 1_000_000
        with self.database.session() as session:
            cost = sum(session.exec(select(Attempt.cost_usd)).all())
        # Each call is rounded up to the micro-dollar in the ledger.
        assert cost <= spent + 1e-9
        assert spent <= cost + 1e-6 * len(closed) + 1e-9

    def _start(self, name: str, *arguments: str) -> None:
        log = self.folder / f"{name}-{time.monotonic_ns()}.log"
        start = ForkedProcess if self.forked else _program
        self.processes[name] = start(arguments, cwd=self.folder, env=self.environment, log=log)

    def _alive(self, name: str) -> None:
        code = self.processes[name].poll()
        if code is not None:
            raise AssertionError(f"acrouter's {name} ended with {code}.\n{self.last_words()}")

    def _story(self) -> str:
        return "\n".join("\n".join(self.history(number)) for number in range(1, len(self.tasks()) + 1))


def _program(arguments: Sequence[str], *, cwd: Path, env: Mapping[str, str], log: Path) -> Process:
    with log.open("wb") as file:
        return subprocess.Popen(
            [sys.executable, "-m", "bot", *arguments],
            cwd=cwd,
            env=env,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
