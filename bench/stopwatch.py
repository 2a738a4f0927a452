"""Tells the time that a model and the tests take from the time that acrouter takes itself."""

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sandbox.types import Backend, CacheLimits, CommandResult, FileDigest, Progress, Sandbox, SandboxSpec, SetupPlan


@dataclass(frozen=True)
class Span:
    """A stretch of time, in seconds since the epoch."""

    began: float
    ended: float


@dataclass(frozen=True)
class Command:
    """A command that a sandbox ran as the agent's user."""

    text: str
    span: Span


def own_seconds(stage: Span, excluded: Iterable[Span]) -> float:
    """Return the length of `stage` without what `excluded` covers of it; spans that overlap count once."""
    left = stage.ended - stage.began
    covered_to = stage.began
    for span in sorted(excluded, key=lambda span: span.began):
        began, ended = max(span.began, covered_to), min(span.ended, stage.ended)
        if ended > began:
            left -= ended - began
            covered_to = ended
    return left


class WatchedBackend:
    """A Backend that notes which commands its sandboxes ran as the agent's user, and when."""

    def __init__(self, backend: Backend) -> None:
        self.name: Literal["docker", "bubblewrap"] = backend.name
        self._backend = backend
        self._lock = threading.Lock()
        self._commands: list[Command] = []

    @property
    def commands(self) -> tuple[Command, ...]:
        with self._lock:
            return tuple(self._commands)

    def describe(self) -> str:
        return self._backend.describe()

    def ensure_base(self, progress: Progress | None = None) -> str:
        return self._backend.ensure_base(progress)

    def ensure_image(self, image: str) -> str:
        return self._backend.ensure_image(image)

    def ensure_service_image(self, image: str) -> str:
        return self._backend.ensure_service_image(image)

    def prepare(self, archive: Path, plan: SetupPlan, *, timeout_s: float, labels: Mapping[str, str]) -> str:
        return self._backend.prepare(archive, plan, timeout_s=timeout_s, labels=labels)

    def identify(self, image: str) -> str:
        return self._backend.identify(image)

    def open(self, spec: SandboxSpec) -> Sandbox:
        return _WatchedSandbox(self._backend.open(spec), self._note)

    def remove_leftovers(self, running_tasks: Callable[[], frozenset[str]]) -> int:
        return self._backend.remove_leftovers(running_tasks)

    def remove_task(self, task: str) -> int:
        return self._backend.remove_task(task)

    def evict(self, limits: CacheLimits) -> int:
        return self._backend.evict(limits)

    def _note(self, command: Command) -> None:
        with self._lock:
            self._commands.append(command)


class _WatchedSandbox:
    def __init__(self, sandbox: Sandbox, note: Callable[[Command], None]) -> None:
        self._sandbox = sandbox
        self._note = note

    def execute(self, command: str, *, timeout_s: float, trusted: bool = False) -> CommandResult:
        result = self._sandbox.execute(command, timeout_s=timeout_s, trusted=trusted)
        if not trusted:
            # The way into the sandbox and back is acrouter's: only what the command took inside is noted.
            now = time.time()
            self._note(Command(command, Span(now - result.duration_s, now)))
        return result

    def put_tree(self, archive: Path) -> None:
        self._sandbox.put_tree(archive)

    def put_file(self, path: str, content: bytes) -> None:
        self._sandbox.put_file(path, content)

    def read_file(self, path: str, *, limit: int = 5_000_000) -> bytes | None:
        return self._sandbox.read_file(path, limit=limit)

    def changed(self, files: Mapping[str, FileDigest]) -> Sequence[str]:
        return self._sandbox.changed(files)

    def close(self) -> None:
        self._sandbox.close()
