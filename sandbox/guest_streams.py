"""Streams of the process inside a sandbox (`sandbox.guest`): to and from the host, and those of a running command.

Like the guest it needs Python 3.9 and nothing else, and is handed over as source.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CHUNK = 1 << 16
_PIPE = 1 << 20


class OwnerGoneError(Exception):
    """The host closed our stdin."""


def read_exactly(count: int) -> bytes:
    parts = []
    while count:
        data = os.read(0, min(count, CHUNK))
        if not data:
            raise OwnerGoneError
        parts.append(data)
        count -= len(data)
    return b"".join(parts)


def answer(header: dict[str, Any], body: bytes = b"") -> None:
    encoded = json.dumps({**header, "body": len(body)}).encode()
    data = memoryview(struct.pack(">I", len(encoded)) + encoded + body)
    while data:
        data = data[os.write(1, data) :]


class Capture:
    """Keeps the first and the last `limit / 2` bytes of a stream of any length."""

    def __init__(self, limit: int) -> None:
        self.limit = max(limit // 2, 1)
        self.head = bytearray()
        self.tail = bytearray()
        self.dropped = 0
        self.timed_out = False
        self.exceeded: list[Any] | None = None

    def add(self, data: bytes) -> None:
        room = self.limit - len(self.head)
        if room > 0:
            self.head += data[:room]
            data = data[room:]
        self.tail += data
        # Cut only now and then: each cut copies the tail.
        if len(self.tail) > 2 * self.limit:
            self.cut()

    def cut(self) -> None:
        excess = len(self.tail) - self.limit
        if excess > 0:
            self.dropped += excess
            del self.tail[:excess]


def widen(pipe: int) -> None:
    """Make a pipe as wide as an unprivileged user may, so that fewer turns are taken; any other file stays as it is."""
    with contextlib.suppress(OSError):
        fcntl.fcntl(pipe, 1031, _PIPE)  # F_SETPIPE_SZ; Python names it since 3.10 only


class Feeder:
    """Hands `expected` bytes from the host on to a command's stdin; a command that wants no more of them is no error.

    It also notices that the host is gone: nothing but these bytes may come while a command runs.
    """

    ended = False

    def __init__(self, expected: int, pipe: int) -> None:
        self.expected = expected
        self.pipe = pipe  # -1: there is none, or nobody reads it
        self.pending = b""
        if pipe >= 0:
            os.set_blocking(pipe, False)
            widen(pipe)
            widen(0)

    def watch(self, poller: select.poll) -> None:
        poller.register(0, select.POLLIN)

    def move(self, poller: select.poll, descriptor: int) -> None:
        if descriptor == 0:
            data = os.read(0, min(self.expected, _PIPE) or 1)
            if not data or not self.expected:
                raise OwnerGoneError
            self.expected -= len(data)
            if self.pipe >= 0:
                self.pending = data
                poller.unregister(0)  # until the command has taken it
                poller.register(self.pipe, select.POLLOUT)
            return
        try:
            self.pending = self.pending[os.write(self.pipe, self.pending) :]
        except BlockingIOError:
            return
        except BrokenPipeError:
            self.pending = b""
        if not self.pending:
            poller.unregister(self.pipe)
            poller.register(0, select.POLLIN)
            if not self.expected:
                self.close()

    def close(self) -> None:
        if self.pipe >= 0:
            os.close(self.pipe)
            self.pipe = -1


class Relay:
    """Carries bytes between a running command and the host: one piece out, then one piece back (it may be empty).

    So there is never more than one piece on its way, and neither side can fill the other's memory.
    """

    expected = 0

    def __init__(self) -> None:
        self.from_command, self.command_writes = os.pipe()
        self.command_reads, self.to_command = os.pipe()
        os.set_blocking(self.to_command, False)
        self.pending = b""
        self.ended = False  # the host wants the command to end

    def started(self) -> None:
        os.close(self.command_writes)
        os.close(self.command_reads)

    def watch(self, poller: select.poll) -> None:
        poller.register(0, select.POLLIN)
        poller.register(self.from_command, select.POLLIN)

    def move(self, poller: select.poll, descriptor: int) -> None:
        if descriptor == self.from_command:
            data = os.read(self.from_command, CHUNK)
            poller.unregister(self.from_command)  # until the host has answered; for good where it is closed
            if data:
                answer({"relay": True}, data)
        elif descriptor == 0:
            (length,) = struct.unpack(">I", read_exactly(4))
            header = json.loads(read_exactly(length))
            self.pending = read_exactly(header["body"])
            self.ended = self.ended or bool(header.get("end"))
            poller.register(self.to_command, select.POLLOUT)
        else:
            try:
                self.pending = self.pending[os.write(self.to_command, self.pending) :]
            except BlockingIOError:
                return
            except BrokenPipeError:
                self.pending = b""
            if not self.pending:
                poller.unregister(self.to_command)
                poller.register(self.from_command, select.POLLIN)

    def close(self) -> None:
        os.close(self.from_command)
        os.close(self.to_command)
