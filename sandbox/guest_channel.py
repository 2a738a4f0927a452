"""The host's end of the line to `sandbox.guest`. What comes back is checked as if the agent had written it."""

import json
import struct
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from sandbox.errors import SandboxError

_HEADER_LIMIT = 1 << 16


Relay = Callable[[bytes], bytes | None]
"""Takes what a running command says and returns what is said to it, perhaps nothing; None: the command is to end."""


class Line(Protocol):
    """A two-way stream of bytes to one guest."""

    def send(self, data: bytes, deadline: float) -> None:
        """Send all of `data`; raise OSError when the line is broken or `deadline` (time.monotonic) is past."""
        ...

    def receive(self, count: int, deadline: float) -> bytes:
        """Return 1 to `count` bytes, or none at the end; raise OSError like `send`."""
        ...

    def interrupt(self) -> None:
        """Make a `send` or `receive` of another thread end at once."""
        ...

    def close(self) -> None:
        """Free its descriptors; nobody uses it any more."""
        ...


class GuestGone(SandboxError):  # noqa: N818
    """The sandbox has ended, or does not answer any more."""


@dataclass(frozen=True)
class Answer:
    header: Mapping[str, Any]
    body: bytes


class GuestChannel:
    """Sends one request at a time and waits for its answer. Threads may share it."""

    def __init__(self, line: Line, body_limit: int) -> None:
        self._line = line
        self._body_limit = body_limit
        self._lock = threading.Lock()
        self._broken = False

    def wait_ready(self, timeout_s: float) -> None:
        """Wait for the guest's first words.

        Raises:
            GuestGone: it did not start.
        """
        with self._lock:
            if self._answer(time.monotonic() + timeout_s, 0).header.get("ready") is not True:
                self._broken = True
                raise GuestGone("the sandbox's guest spoke out of turn")

    def call(
        self,
        request: Mapping[str, Any],
        *,
        timeout_s: float,
        body: Iterable[bytes] = (),
        body_bytes: int = 0,
        limit: int | None = None,
        relay: Relay | None = None,
    ) -> Answer:
        """Send a request with `body_bytes` bytes from `body`, and return the answer.

        What a command says to the host before it ends goes to `relay`, which must not raise.

        Raises:
            GuestGone: the sandbox ended, answered nonsense, or did not answer within `timeout_s`.
        """
        deadline = time.monotonic() + timeout_s
        with self._lock:
            if self._broken:
                raise GuestGone("the sandbox has ended")
            try:
                encoded = json.dumps({**request, "body": body_bytes}).encode()
                self._line.send(struct.pack(">I", len(encoded)) + encoded, deadline)
                for chunk in body:
                    self._line.send(chunk, deadline)
                most = self._body_limit if limit is None else limit
                answer = self._answer(deadline, most)
                while relay is not None and answer.header.get("relay") is True:
                    back = relay(answer.body)
                    header = json.dumps({"operation": "relay", "body": len(back or b""), "end": back is None}).encode()
                    self._line.send(struct.pack(">I", len(header)) + header + (back or b""), deadline)
                    answer = self._answer(deadline, most)
                return answer
            except OSError as error:
                self._broken = True
                raise GuestGone(f"the sandbox does not answer: {error}") from error
            except BaseException:
                self._broken = True  # the next answer could be this request's
                raise

    def close(self) -> None:
        """End a call that another thread waits in, and free the line."""
        self._broken = True
        self._line.interrupt()
        # Its descriptor's number may belong to something else once it is closed: that thread has to be out first.
        with self._lock:
            self._line.close()

    def _answer(self, deadline: float, body_limit: int) -> Answer:
        (length,) = struct.unpack(">I", self._exactly(4, deadline))
        if length > _HEADER_LIMIT:
            raise self._nonsense()
        try:
            header = json.loads(self._exactly(length, deadline))
            size = header["body"]
        except (ValueError, KeyError, TypeError) as error:
            raise self._nonsense() from error
        if not isinstance(size, int) or not 0 <= size <= body_limit:
            raise self._nonsense()
        return Answer(header, self._exactly(size, deadline))

    def _exactly(self, count: int, deadline: float) -> bytes:
        parts = []
        while count:
            try:
                data = self._line.receive(count, deadline)
            except OSError as error:
                self._broken = True
                raise GuestGone(f"the sandbox does not answer: {error}") from error
            if not data:
                self._broken = True
                raise GuestGone("the sandbox has ended")
            parts.append(data)
            count -= len(data)
        return b"".join(parts)

    def _nonsense(self) -> GuestGone:
        self._broken = True
        return GuestGone("the sandbox answered nonsense")
