"""A local double of a paid, OpenAI-compatible embedding API."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = Callable[[list[str]], list[list[float]]]


@contextmanager
def embedding_server(answer: Answer, status: int = 200) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield (base URL, list of the requests' bodies as they come in)."""
    seen: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            seen.append(body)
            vectors = answer(body["input"])
            data = [{"object": "embedding", "index": n, "embedding": v} for n, v in enumerate(vectors)]
            # Providers may answer out of order: the index counts.
            payload = json.dumps(
                {
                    "object": "list",
                    "data": data[::-1],
                    "model": body["model"],
                    "usage": {"prompt_tokens": 1, "total_tokens": 1},
                }
            ).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(payload)))
            self.end_headers()
            self.wfile.write(payload)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1", seen
    finally:
        server.shutdown()
        server.server_close()
