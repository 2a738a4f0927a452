"""git's own protocol over real HTTP from the local GitHub; one of its requests can fail."""

import socket
import threading
from dataclasses import dataclass, field
from typing import Any, Literal

import uvicorn

from tests.support.faulty_wire import Call
from tests.support.services import wait_until

GitKind = Literal["401", "403", "404", "500", "502", "reset", "time-out after the work"]
GIT_KINDS: tuple[GitKind, ...] = ("401", "403", "404", "500", "502", "reset", "time-out after the work")


@dataclass
class FaultyGit:
    """ASGI middleware; the `fail_at`-th request (from 0) fails once."""

    app: Any
    fail_at: int | None = None
    kind: GitKind = "500"
    calls: list[Call] = field(default_factory=list)

    def fail(self, kind: GitKind, at: int | None) -> None:
        """Begin to count anew."""
        self.calls, self.kind, self.fail_at = [], kind, at

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        number = len(self.calls)
        query = scope["query_string"].decode()
        self.calls.append(Call(scope["method"], f"/REPO.git{scope['path'].partition('.git')[2]}{query and '?'}{query}"))
        if number != self.fail_at:
            await self.app(scope, receive, send)
            return
        body = bytearray()
        while True:  # a client that is still sending would see a broken pipe, whatever the answer
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body", False):
                break
        if self.kind == "time-out after the work":
            await self.app(scope, _once(bytes(body)), _to_nobody)
        status = int(self.kind) if self.kind.isdecimal() else 200
        # An answer that ends before its length: the server closes the connection.
        content = b"no" if status != 200 else b""
        await send({"type": "http.response.start", "status": status, "headers": [(b"content-length", b"2")]})
        if content:
            await send({"type": "http.response.body", "body": content})


class GitServer:
    """Serves a FaultyGit on a port of this machine."""

    def __init__(self, app: Any) -> None:
        self.faults = FaultyGit(app)
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._server = uvicorn.Server(
            uvicorn.Config(self.faults, log_config=None, log_level="critical", lifespan="off")
        )
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self._socket]}, daemon=True)
        self._thread.start()
        wait_until(lambda: self._server.started, what="the git server")

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join(10)
        self._socket.close()


def _once(body: bytes) -> Any:
    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    return receive


async def _to_nobody(_message: dict[str, Any]) -> None:
    pass
