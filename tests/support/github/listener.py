"""Listens for webhooks as an App does, and keeps those whose signature is right."""

import hashlib
import hmac
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.support.github.wire import Request, Response, make_server


@dataclass(frozen=True)
class Heard:
    event: str
    guid: str
    payload: Any

    @property
    def name(self) -> str:
        action = self.payload.get("action")
        return f"{self.event}.{action}" if action else self.event


@dataclass
class Listener:
    url: str
    heard: list[Heard] = field(default_factory=list)
    forged: int = 0
    """How many had no signature or a wrong one."""

    def names(self) -> list[str]:
        return [heard.name for heard in self.heard]

    def last(self, name: str) -> Heard:
        """Return the last webhook of an event and action, such as `issues.opened`."""
        matching = [heard for heard in self.heard if heard.name == name]
        assert matching, f"no {name} among {self.names()}"
        return matching[-1]


@contextmanager
def listening(secret: str) -> Iterator[Listener]:
    listener = Listener("")

    def answer(request: Request) -> Response:
        wanted = "sha256=" + hmac.new(secret.encode(), request.content, hashlib.sha256).hexdigest()
        if not hmac.compare_digest(wanted, request.headers.get("x-hub-signature-256", "")):
            listener.forged += 1
            return Response(401)
        headers = request.headers
        heard = Heard(headers["x-github-event"], headers["x-github-delivery"], json.loads(request.content))
        listener.heard.append(heard)
        return Response(202)

    server = make_server(0, answer)
    listener.url = f"http://127.0.0.1:{server.server_port}/webhooks/github"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield listener
    finally:
        server.shutdown()
        server.server_close()
