"""A bubblewrap process's stdin and stdout as one stream."""

import contextlib
import os
import select
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache


class BubblewrapLine:
    """Fulfils `guest_channel.Line`, and owns the process."""

    def __init__(self, options: Sequence[str], command: Sequence[str], environment: dict[str, str]) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  (closed in `close`)
        try:
            self._process = _spawner(os.getpid()).submit(self._start, options, command, environment).result()
        except BaseException:
            self._errors.close()
            raise
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin = self._process.stdin.fileno()
        self._stdout = self._process.stdout.fileno()
        os.set_blocking(self._stdin, False)
        self._closing = threading.Lock()
        self._closed = False

    @property
    def pid(self) -> int:
        return self._process.pid

    def _start(
        self, options: Sequence[str], command: Sequence[str], environment: dict[str, str]
    ) -> "subprocess.Popen[bytes]":
        # Options on the command line could be read from inside, and they name folders of the host.
        with tempfile.TemporaryFile() as hidden:
            hidden.write("\0".join(options).encode() + b"\0")
            hidden.seek(0)
            return subprocess.Popen(
                ["bwrap", "--args", str(hidden.fileno()), "--", *command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                cwd="/",
                env=environment,
                bufsize=0,
                pass_fds=[hidden.fileno()],
            )

    def send(self, data: bytes, deadline: float) -> None:
        view = memoryview(data)
        while view:
            _wait(self._stdin, select.POLLOUT, deadline)
            with contextlib.suppress(BlockingIOError):
                view = view[os.write(self._stdin, view) :]

    def receive(self, count: int, deadline: float) -> bytes:
        _wait(self._stdout, select.POLLIN, deadline)
        return os.read(self._stdout, min(count, 1 << 16))

    def said(self) -> str:
        """Return what bubblewrap itself complained about."""
        self._errors.seek(0)
        return self._errors.read(4000).decode("utf-8", "replace").strip()

    def interrupt(self) -> None:
        """End all its processes: they live in one namespace, which dies with its first process."""
        self._process.kill()

    def close(self) -> None:
        with self._closing:
            if self._closed:
                return
            self._closed = True
            self._process.kill()
            self._process.wait()
            for stream in (self._process.stdin, self._process.stdout, self._errors):
                if stream is not None:
                    with contextlib.suppress(OSError):
                        stream.close()


def _wait(descriptor: int, event: int, deadline: float) -> None:
    """Wait for a descriptor by poll(2): select(2) knows none above 1023, and a server may have more open.

    Raises:
        TimeoutError: `deadline` (time.monotonic) is past.
    """
    poller = select.poll()
    poller.register(descriptor, event)
    if not poller.poll(max(deadline - time.monotonic(), 0) * 1000):
        raise TimeoutError("its time is up")


@cache
def _spawner(_pid: int) -> ThreadPoolExecutor:
    """Return a thread that lives as long as the process: --die-with-parent watches the thread that forked."""
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix="bubblewrap")
