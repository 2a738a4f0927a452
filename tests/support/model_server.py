"""An OpenAI-compatible endpoint that answers from a script, and misbehaves as told."""

import json
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from sandbox.agent_types import ModelEndpoint


@dataclass(frozen=True)
class Say:
    """An ordinary answer: a text, and a command as a tool call."""

    command: str | None = None
    text: str = "Thinking."
    usage: tuple[int, int] | None = (1000, 100)
    """Tokens in and out; None: the answer holds no usage."""
    arguments: str | None = None
    """The tool call's raw arguments, in place of `command`."""


@dataclass(frozen=True)
class Fail:
    """An HTTP error."""

    status: int
    message: str = "no"


@dataclass(frozen=True)
class Raw:
    """A body as it is, with status 200."""

    body: bytes


@dataclass(frozen=True)
class Hang:
    """No answer for some seconds, then a closed connection."""

    seconds: float


@dataclass(frozen=True)
class Drop:
    """A connection closed without an answer."""


Reply = Say | Fail | Raw | Hang | Drop


@dataclass
class ModelServer:
    """The running endpoint. The last reply of the script repeats."""

    url: str
    script: list[Reply] = field(default_factory=list)
    requests: list[dict[str, Any]] = field(default_factory=list)
    """Bodies, in order; the Authorization header under `_authorization`."""

    def next(self) -> Reply:
        return self.script.pop(0) if len(self.script) > 1 else self.script[0]

    def endpoint(self, **changes: Any) -> ModelEndpoint:
        values: dict[str, Any] = {
            "name": "scripted",
            "litellm_id": "openai/scripted",
            "input_usd_per_mtok": 1.0,
            "output_usd_per_mtok": 10.0,
            "api_base": self.url,
            "api_key": "sk-canary-0123456789abcdef0123",
            "timeout_s": 10.0,
            "max_output_tokens": 500,
        }
        return ModelEndpoint(**(values | changes))


@contextmanager
def model_server(script: Sequence[Reply]) -> Iterator[ModelServer]:
    """Serve `script` on the loopback address."""
    server: ModelServer

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None: ...

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            server.requests.append(body | {"_authorization": self.headers.get("Authorization", "")})
            reply = server.next()
            match reply:
                case Hang(seconds):
                    time.sleep(seconds)
                    self.close_connection = True
                case Drop():
                    self.close_connection = True
                case Raw(content):
                    self._answer(200, content)
                case Fail(status, message):
                    self._answer(status, json.dumps({"error": {"message": message}}).encode())
                case Say():
                    self._answer(200, json.dumps(_completion(reply, len(server.requests))).encode())

        def _answer(self, status: int, content: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    listener = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server = ModelServer(f"http://127.0.0.1:{listener.server_port}/v1", list(script))
    thread = threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        listener.shutdown()
        listener.server_close()
        thread.join(5)


def _completion(reply: Say, number: int) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": reply.text}
    arguments = json.dumps({"command": reply.command}) if reply.arguments is None else reply.arguments
    if reply.command is not None or reply.arguments is not None:
        function = {"name": "bash", "arguments": arguments}
        message["tool_calls"] = [{"id": f"call_{number}", "type": "function", "function": function}]
    answer: dict[str, Any] = {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": "scripted",
        "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
    }
    if reply.usage is not None:
        tokens_in, tokens_out = reply.usage
        answer["usage"] = {
            "prompt_tokens": tokens_in,
            "completion_tokens": tokens_out,
            "total_tokens": tokens_in + tokens_out,
        }
    return answer
