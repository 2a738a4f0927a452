"""Carries what leaves for GitHub to a web application in this process, and can fail one of the calls."""

import asyncio
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal
from unittest.mock import patch
from urllib.parse import unquote, urlsplit

import httpx
import requests
from requests.adapters import HTTPAdapter
from urllib3 import HTTPResponse

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
MESSAGES = {
    "401": "Bad credentials",
    "403": "You have exceeded a secondary rate limit. Please wait a few minutes before you try again.",
    "404": "Not Found",
    "409": "Conflict",
    "422": "Validation Failed",
    "500": "Server Error",
    "502": "Server Error",
}
_NAMED = ("branches", "labels", "users", "collaborators")
"""What comes after these in a path is somebody's or something's name."""


@dataclass(frozen=True)
class Call:
    """A call by what it is about, without numbers, names and SHAs."""

    method: str
    path: str

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


class _ResetError(Exception):
    """The connection broke."""


class _TimeOutError(Exception):
    """No answer came, though the work was done."""


@dataclass(frozen=True)
class _Answer:
    status: int
    headers: dict[str, str]
    content: bytes


@dataclass
class Wire:
    """The `fail_at`-th call (from 0) fails once."""

    app: Any
    loop: asyncio.AbstractEventLoop
    fail_at: int | None = None
    kind: Kind = "500"
    calls: list[Call] = field(default_factory=list)

    def fail(self, kind: Kind, at: int | None) -> None:
        """Begin to count anew."""
        self.calls, self.kind, self.fail_at = [], kind, at

    @contextmanager
    def connected(self) -> Iterator[None]:
        """Let everything that PyGithub and httpx send go over this wire."""
        with (
            patch.object(HTTPAdapter, "send", lambda adapter, request, **_: self._for_requests(adapter, request)),
            patch.object(httpx.HTTPTransport, "handle_request", lambda _self, request: self._for_httpx(request)),
        ):
            yield

    def _for_requests(self, adapter: HTTPAdapter, request: requests.PreparedRequest) -> requests.Response:
        body = request.body or b""
        content = body.encode() if isinstance(body, str) else bytes(body)
        headers = {name: str(value) for name, value in request.headers.items()}
        try:
            answer = self._carry(request.method or "", request.url or "", headers, content)
        except _ResetError:
            raise requests.ConnectionError("Connection reset by peer") from None
        except _TimeOutError:
            raise requests.ReadTimeout("Read timed out.") from None
        if answer.status in (301, 307):  # as urllib3 asks its Retry about it
            answered = HTTPResponse(status=answer.status, headers=answer.headers)
            if adapter.max_retries.is_retry(request.method or "", answer.status):
                adapter.max_retries.increment(request.method, request.url, response=answered)
        response = requests.Response()
        response.status_code = answer.status
        response.headers.update({"Content-Type": "application/json", **answer.headers})
        response.raw = io.BytesIO(answer.content)
        response._content = answer.content
        response.request = request
        response.url = request.url or ""
        return response

    def _for_httpx(self, request: httpx.Request) -> httpx.Response:
        try:
            answer = self._carry(request.method, str(request.url), dict(request.headers), request.read())
        except _ResetError:
            raise httpx.ReadError("Connection reset by peer", request=request) from None
        except _TimeOutError:
            raise httpx.ReadTimeout("Read timed out.", request=request) from None
        return httpx.Response(answer.status, headers=answer.headers, content=answer.content, request=request)

    def _carry(self, method: str, url: str, headers: dict[str, str], body: bytes) -> _Answer:
        number = len(self.calls)
        self.calls.append(Call(method, plain(urlsplit(url).path)))
        if number != self.fail_at:
            return self._ask(method, url, headers, body)
        if self.kind == "reset":
            raise _ResetError
        if self.kind == "time-out after the work":
            self._ask(method, url, headers, body)
            raise _TimeOutError
        status = self.kind[:3]
        waits = {"Retry-After": "1"} if self.kind == "403 secondary" else {}
        return _Answer(int(status), waits, f'{{"message": "{MESSAGES[status]}"}}'.encode())

    def _ask(self, method: str, url: str, headers: dict[str, str], body: bytes) -> _Answer:
        parts = urlsplit(url)
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": unquote(parts.path),
            "raw_path": parts.path.encode(),
            "query_string": parts.query.encode(),
            "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
            "client": ("127.0.0.1", 1),
            "server": ("localhost", 80),
        }
        return asyncio.run_coroutine_threadsafe(_ask(self.app, scope, body), self.loop).result(30)


async def _ask(app: Any, scope: dict[str, Any], body: bytes) -> _Answer:
    status, headers, content = 0, {}, bytearray()

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        nonlocal status
        if message["type"] == "http.response.start":
            status = message["status"]
            headers.update({name.decode(): value.decode() for name, value in message["headers"]})
        content.extend(message.get("body", b""))

    await app(scope, receive, send)
    return _Answer(status, headers, bytes(content))


def plain(path: str) -> str:
    """Return a path without what is different in each run."""
    parts = path.strip("/").split("/")
    if parts[:1] == ["repos"]:
        parts[1:3] = ["REPO"]
    return "/" + "/".join(_name(part, before) for before, part in zip(["", *parts], parts, strict=False))


def _name(part: str, before: str) -> str:
    if part.isdecimal():
        return "N"
    if re.fullmatch("[0-9a-f]{40}", part):
        return "SHA"
    return "NAME" if before in (*_NAMED, "_blobs") else part
