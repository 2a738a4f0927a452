"""A container's stdin and stdout as one stream, over Docker's attach endpoint."""

import contextlib
import socket
import struct
import time
from typing import Any

_STDOUT = 1


class DockerLine:
    """Fulfils `guest_channel.Line`. Without a TTY Docker sends frames: stream (1 byte), 3 bytes, length (4 bytes)
    (https://docs.docker.com/reference/api/engine/#tag/Container/operation/ContainerAttach)."""

    def __init__(self, attached: Any) -> None:
        self._attached = attached  # keeps the HTTP response alive, which owns the connection
        self._socket: socket.socket = getattr(attached, "_sock", attached)
        self._left = 0
        self._is_stdout = True
        self._buffer = bytearray()

    def send(self, data: bytes, deadline: float) -> None:
        self._socket.settimeout(max(deadline - time.monotonic(), 0.001))
        self._socket.sendall(data)

    def receive(self, count: int, deadline: float) -> bytes:
        while True:
            while self._left == 0:
                header = self._raw(8, deadline)
                if header is None:
                    return b""
                stream, self._left = struct.unpack(">BxxxL", header)
                self._is_stdout = stream == _STDOUT
            data = self._take(min(count, self._left) if self._is_stdout else self._left, deadline)
            if not data:
                return b""
            self._left -= len(data)
            if self._is_stdout:
                return data

    def interrupt(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.close()
        with contextlib.suppress(Exception):
            self._attached.close()

    def _raw(self, count: int, deadline: float) -> bytes | None:
        data = b""
        while len(data) < count:
            more = self._take(count - len(data), deadline)
            if not more:
                return None
            data += more
        return data

    def _take(self, count: int, deadline: float) -> bytes:
        if not self._buffer:
            self._socket.settimeout(max(deadline - time.monotonic(), 0.001))
            self._buffer += self._socket.recv(1 << 16)
        data = bytes(self._buffer[:count])
        del self._buffer[:count]
        return data
