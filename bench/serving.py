"""A server in a process of its own, up while a benchmark measures it."""

import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench.errors import BenchError

_START_S = 90.0
_END_S = 30.0


@contextmanager
def serving(
    command: Sequence[str],
    port: int,
    environment: Mapping[str, str],
    *,
    folder: Path | None = None,
    log: Path | None = None,
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a server in `folder`, wait until it listens on a port of this machine, and end it afterwards.

    What it prints goes to the file `log`, or to where this process prints.

    Raises:
        BenchError: it did not come up.
    """
    with ExitStack() as stack:
        output = stack.enter_context(log.open("wb")) if log else None
        errors = subprocess.STDOUT if log else None
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=output, stderr=errors)
        stack.callback(_end, process)
        deadline = time.monotonic() + _START_S
        while not _listens(port):
            if process.poll() is not None or time.monotonic() > deadline:
                raise BenchError(f"{' '.join(command[:3])} did not come up: {process.returncode}.")
            time.sleep(0.1)
        yield process


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(_END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(_END_S)


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True
