"""Sandboxes started before they are asked for, and ended without anybody waiting.

A task needs about six, one after the other. Starting one takes half a second and ending one a quarter: done while the
one before works, that costs no time. Each is still fresh: given out once, and never touched before. On a machine with
few cores they are started one by one: two at once would both come later, and the task waits for the first.
"""

import contextlib
import os
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from sandbox.errors import SandboxError
from sandbox.guest_channel import Relay
from sandbox.types import CommandResult, ConversingSandbox, FileDigest, Sandbox, SandboxSpec

AHEAD = 2
"""Sandboxes that wait: one is not enough where a short command follows another."""
_FEW_CORES = 2
_NOWHERE = "/nonexistent"


class Opener(Protocol):
    """Whatever starts sandboxes: a Backend, or the one below."""

    def open(self, spec: SandboxSpec) -> Sandbox: ...


class SandboxesAhead:
    """An Opener that keeps a few sandboxes of one kind ready. A context manager; at its end all are gone.

    One that cannot be started ahead of time is no error: the next `open` tries again and says why.
    """

    def __init__(self, opener: Opener, spec: SandboxSpec, ahead: int = AHEAD, *, at_once: int | None = None) -> None:
        """`at_once`: how many may be starting; None: as the machine's cores allow."""
        self._opener = opener
        self._spec = spec
        self._ahead = ahead
        self._ready: deque[Future[Sandbox]] = deque()
        self._lock = threading.Lock()
        self._ended = False
        self._left: int | None = None
        """How many more will be asked for; None: nobody knows."""
        self._starter = ThreadPoolExecutor(at_once or _at_once(ahead), thread_name_prefix="sandboxes-start")
        self._ender = ThreadPoolExecutor(2, thread_name_prefix="sandboxes-end")

    def __enter__(self) -> Self:
        self._fill()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.enough()
        self._starter.shutdown(wait=True)
        self._ender.shutdown(wait=True)

    def open(self, spec: SandboxSpec) -> Sandbox:
        """Give out a sandbox, ready or started now where `spec` is another one.

        Raises:
            SandboxError, ImageError: it could not be started.
        """
        sandbox = self._take() if spec == self._spec else None
        return _Ending(sandbox or self._opener.open(spec), self._end)

    def expect(self, count: int | None) -> None:
        """Keep no more ready than the last `count` to be asked for; None: nobody knows how many will be.

        One that is asked for after the last shows that they were not the last: then nobody knows.
        """
        with self._lock:
            self._left = count

    def enough(self) -> None:
        """Start no more ahead of time and end those that wait, in the background."""
        with self._lock:
            self._ended = True
            ready, self._ready = self._ready, deque()
        for waiting in ready:
            if not waiting.cancel():
                self._ender.submit(_discard, waiting)

    def _fill(self) -> None:
        with self._lock:
            most = self._ahead if self._left is None else min(self._ahead, self._left)
            while not self._ended and len(self._ready) < most:
                self._ready.append(self._starter.submit(self._opener.open, self._spec))

    def _take(self) -> Sandbox | None:
        """Return the next one that waits; None where there is none, or it died while it waited."""
        with self._lock:
            if self._left == 0:
                self._left = None
        self._fill()
        with self._lock:
            waiting = self._ready.popleft() if self._ready else None
            if self._left is not None:
                self._left -= 1
        if waiting is None:  # enough was said
            return None
        try:
            sandbox = waiting.result()
            sandbox.read_file(_NOWHERE)  # a sign of life
        except SandboxError:
            self._ender.submit(_discard, waiting)
            return None
        finally:
            self._fill()
        return sandbox

    def _end(self, close: Callable[[], None]) -> None:
        try:
            self._ender.submit(close)
        except RuntimeError:  # all has ended
            close()


class _Ending:
    """A sandbox whose end nobody waits for."""

    def __init__(self, sandbox: Sandbox, end: Callable[[Callable[[], None]], None]) -> None:
        self._sandbox = sandbox
        self._end = end

    def execute(self, command: str, *, timeout_s: float, trusted: bool = False) -> CommandResult:
        return self._sandbox.execute(command, timeout_s=timeout_s, trusted=trusted)

    def converse(self, command: str, *, timeout_s: float, relay: Relay) -> CommandResult:
        if not isinstance(self._sandbox, ConversingSandbox):
            raise SandboxError("The commands of this sandbox have no line to the host.")
        return self._sandbox.converse(command, timeout_s=timeout_s, relay=relay)

    def put_tree(self, archive: Path) -> None:
        self._sandbox.put_tree(archive)

    def put_file(self, path: str, content: bytes) -> None:
        self._sandbox.put_file(path, content)

    def read_file(self, path: str, *, limit: int = 5_000_000) -> bytes | None:
        return self._sandbox.read_file(path, limit=limit)

    def changed(self, files: Mapping[str, FileDigest]) -> Sequence[str]:
        return self._sandbox.changed(files)

    def close(self) -> None:
        self._end(self._sandbox.close)


def _at_once(ahead: int) -> int:
    return 1 if (os.cpu_count() or 1) <= _FEW_CORES else ahead


def _discard(waiting: "Future[Sandbox]") -> None:
    with contextlib.suppress(SandboxError):
        waiting.result().close()
