"""A local double of an OpenAI-compatible server with a policy model, which answers as a test wants it to."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Request = dict[str, Any]
Answer = Callable[[Request, BaseHTTPRequestHandler], None]


def completion(content: str, tokens: Sequence[tuple[str, Mapping[str, float]]] | None = None) -> dict[str, Any]:
    """Return a chat completion; `tokens` are pairs of a generated token and the listed ones with log-probabilities."""
    logprobs = None
    if tokens is not None:
        logprobs = {
            "content": [
                {
                    "token": token,
                    "logprob": listed[token],
                    "top_logprobs": [{"token": t, "logprob": p} for t, p in listed.items()],
                }
                for token, listed in tokens
            ]
        }
    return {"choices": [{"index": 0, "message": {"role": "assistant", "content": content}, "logprobs": logprobs}]}


def send(handler: BaseHTTPRequestHandler, payload: object, status: int = 200) -> None:
    body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    handler.send_response(status)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


@contextmanager
def policy_server(answer: Answer) -> Iterator[tuple[str, list[Request]]]:
    """Yield (base URL, list of the requests' bodies as they come in)."""
    seen: list[Request] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            body["_authorization"] = self.headers.get("Authorization", "")
            seen.append(body)
            try:
                answer(body, self)
            except (BrokenPipeError, ConnectionResetError):
                """The client gave up, as it should."""

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1", seen
    finally:
        server.shutdown()
        server.server_close()
