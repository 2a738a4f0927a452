"""A model's provider with one answer, and the proxy of a command line agent before it."""

import base64
import json
import struct
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

from sandbox.agent.model_proxy import ModelProxy
from sandbox.agent_types import AgentLimits, ModelEndpoint
from tests.support.meters import CountingMeter

KEY = "sk-canary-0123456789abcdef0123"


@contextmanager
def upstream(status: int | Sequence[int] = 200, content: bytes = b"") -> Iterator[tuple[str, list[Any]]]:
    """A provider with one answer, or a status for each request and the last one from then on.

    Yields its address and the requests as (path, headers, body).
    """
    requests: list[Any] = []
    statuses = [status] if isinstance(status, int) else status

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None: ...

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            requests.append((self.path, {k.lower(): v for k, v in self.headers.items()}, body))
            self.send_response(statuses[min(len(requests), len(statuses)) - 1])
            self.send_header("Content-Length", str(len(content)))
            self.send_header("Location", "http://127.0.0.1:9/elsewhere")
            self.end_headers()
            self.wfile.write(content)

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", requests
    finally:
        server.shutdown()
        server.server_close()


def proxy(
    url: str,
    meter: CountingMeter,
    limits: AgentLimits | None = None,
    left_s: float = 10.0,
    model: str = "openai/m-1",
) -> ModelProxy:
    endpoint = ModelEndpoint("m", model, 1.0, 10.0, 0.1, api_base=url, api_key=KEY, max_output_tokens=500)
    return ModelProxy(
        endpoint, meter, limits or AgentLimits(), remaining_s=lambda: left_s, after_call=lambda _proxy: None
    )


def asked(
    to: ModelProxy, path: str, body: Any, method: str = "POST", headers: dict[str, str] | None = None
) -> tuple[int, bytes] | None:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    message = {"method": method, "path": path, "headers": headers or {}, "body": base64.b64encode(content).decode()}
    encoded = json.dumps(message).encode()
    answer = to(struct.pack(">I", len(encoded)) + encoded)
    if answer is None:
        return None
    found = json.loads(answer[4:])
    return found["status"], base64.b64decode(found["body"])
