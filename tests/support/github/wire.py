"""The HTTP server in front of the stateful GitHub: it records each request and hands it on."""

import json
import socket
import struct
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from bot.demo.hub.requests import window


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    """As it came, percent-encoding and all."""
    query_text: str
    headers: Mapping[str, str]
    """Names in lower case."""
    content: bytes

    @property
    def plain_path(self) -> str:
        return unquote(self.path)

    @property
    def query(self) -> dict[str, str]:
        return dict(parse_qsl(self.query_text, keep_blank_values=True))

    @property
    def token(self) -> str:
        return self.headers.get("authorization", "").partition(" ")[2].strip()

    def json(self) -> Any:
        """Return the decoded body, or None where there is none or where it is no JSON."""
        try:
            return json.loads(self.content) if self.content else None
        except ValueError:
            return None


@dataclass(frozen=True)
class Response:
    status: int
    content: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)

    def json(self) -> Any:
        return json.loads(self.content) if self.content else None


class ConnectionReset(Exception):  # noqa: N818  (it is no error of ours: a test asked for it)
    """The connection is broken instead of answered."""


@dataclass(frozen=True)
class Recorded:
    """A request that was made, and what it was answered; status 0: the connection was broken."""

    method: str
    path: str
    query: Mapping[str, str]
    body: Any
    token: str
    status: int
    at: float = field(default_factory=time.time)


def as_json(status: int, body: Any, headers: Mapping[str, str] | None = None) -> Response:
    kind = {"Content-Type": "application/json; charset=utf-8"}
    return Response(status, json.dumps(body).encode(), {**kind, **(headers or {})})


def error(status: int, message: str, errors: list[Any] | None = None) -> Response:
    body: dict[str, Any] = {"message": message, "documentation_url": "https://docs.github.com/rest"}
    if errors is not None:
        body["errors"] = errors
    return as_json(status, body)


def page(request: Request, items: list[Any]) -> Response:
    """Answer one page of a list, with the way to the next where there is one."""
    shown, headers = window(items, request.query, f"http://{request.headers.get('host', 'localhost')}{request.path}")
    return as_json(200, shown, headers)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    # Clients that go away in the middle are what some tests are about.
    block_on_close = False
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        del request, client_address


def make_server(port: int, answer: Callable[[Request], Response]) -> ThreadingHTTPServer:
    """Return a server on the loopback address whose every request `answer` answers, each in a thread of its own."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def handle_any(self) -> None:
            parts = urlsplit(self.path)
            headers = {name.lower(): value for name, value in self.headers.items()}
            request = Request(self.command, parts.path, parts.query, headers, self._content(headers))
            try:
                response = answer(request)
            except ConnectionReset:
                self._reset()
                return
            self._send(response)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_any  # noqa: N815

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            del format, args

        def _content(self, headers: Mapping[str, str]) -> bytes:
            if headers.get("transfer-encoding", "").lower() != "chunked":
                return self.rfile.read(int(headers.get("content-length", 0)))
            content = b""
            # git sends large packs in chunks (RFC 9112, section 7.1).
            while size := int(self.rfile.readline().split(b";")[0], 16):
                content += self.rfile.read(size)
                self.rfile.readline()
            while self.rfile.readline().strip():
                pass
            return content

        def _send(self, response: Response) -> None:
            self.send_response(response.status)
            for name, value in response.headers.items():
                self.send_header(name, value)
            if response.status != 204:
                self.send_header("Content-Length", str(len(response.content)))
            self.end_headers()
            if response.status != 204:
                self.wfile.write(response.content)

        def _reset(self) -> None:
            # A zero linger makes close() send RST instead of FIN.
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.close_connection = True
            self.rfile.close()
            self.connection.close()

    return _Server(("127.0.0.1", port), Handler)
