"""The scripted models' endpoint: enough of OpenAI's chat completions for LiteLLM, on the loopback address.

Source of the shapes: https://platform.openai.com/docs/api-reference/chat/create.
"""

import hmac
import json
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from bot.demo.materialise import BugRepository
from bot.demo.scripted import scripts
from bot.demo.scripted.models import SCRIPTED_MODELS, ScriptedModel
from bot.demo.scripted.recognise import recognise
from bot.demo.scripted.scripts import Step

_LARGEST_BODY_BYTES = 20_000_000
_MODELS = {model.name: model for model in SCRIPTED_MODELS}


@dataclass(frozen=True)
class Call:
    """One request that was answered, for tests and for the demo's account of itself."""

    model: str
    bug: str
    """The catalogue's name, or empty where the prompt is about none of them."""
    step: int
    command: str = field(default="", compare=False)
    """What the agent is to run; empty where the answer asks for nothing."""
    began: float = field(default=0.0, compare=False)
    """Seconds since the epoch, like `ended`."""
    ended: float = field(default=0.0, compare=False)


class RequestError(Exception):
    """A request that gets an error for an answer."""

    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.status = status


class ScriptedEndpoint:
    """Serves the scripted models until it is stopped; a context manager."""

    def __init__(
        self, repositories: Sequence[BugRepository], *, api_key: str, port: int = 0, latency_s: float = 0.0
    ) -> None:
        """Listen on `port` of 127.0.0.1 (0: any free one). Every request must carry `api_key` as its bearer token."""
        self._repositories = tuple(repositories)
        self._api_key = api_key
        self.latency_s = latency_s
        self.calls: list[Call] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", port), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.05,), name="scripted-models", daemon=True
        )

    @property
    def api_base(self) -> str:
        """The address that LiteLLM wants, ending in `/v1`."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def start(self) -> Self:
        self._thread.start()
        return self

    def stop(self) -> None:
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join(10)
        self._server.server_close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def is_allowed(self, authorization: str) -> bool:
        return hmac.compare_digest(authorization.encode(), f"Bearer {self._api_key}".encode())

    def complete(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the chat completion for a request.

        Raises:
            RequestError: an unknown model, a request that cannot be read, or a model that is scripted to be dead.
        """
        began = time.time()
        model = _MODELS.get(str(request.get("model")))
        if model is None:
            raise RequestError(HTTPStatus.NOT_FOUND, f"there is no scripted model named {request.get('model')!r}")
        if request.get("stream"):
            raise RequestError(HTTPStatus.BAD_REQUEST, "the scripted models do not stream")
        messages = request.get("messages")
        if not isinstance(messages, list) or not all(isinstance(message, dict) for message in messages):
            raise RequestError(HTTPStatus.BAD_REQUEST, "messages must be a list of objects")
        if model.manner == "dead":
            raise RequestError(HTTPStatus.INTERNAL_SERVER_ERROR, "this scripted model is dead on purpose")
        time.sleep(self.latency_s)
        number = sum(message.get("role") == "assistant" for message in messages)
        repository = recognise(messages, self._repositories)
        step = _step(model, repository, number)
        answer = _completion(model, messages, step, number)
        bug = repository.bug.name if repository else ""
        self.calls.append(Call(model.name, bug, number, step.command, began, time.time()))
        return answer


def _step(model: ScriptedModel, repository: BugRepository | None, number: int) -> Step:
    match model.manner:
        case "loop":
            return scripts.loop_step(number)
        case "garbage":
            return scripts.garbage_step(number)
        case "skilled" if repository is not None:
            script = scripts.skilled(repository, model.name)
        case _:
            script = scripts.empty()
    return script[min(number, len(script) - 1)]


def _completion(model: ScriptedModel, messages: Sequence[Mapping[str, Any]], step: Step, number: int) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": f"[{model.name}, a scripted model] {step.thought}"}
    if step.command:
        arguments = json.dumps({"command": step.command})
        function = {"name": "bash", "arguments": arguments}
        message["tool_calls"] = [{"id": f"call_scripted_{number}", "type": "function", "function": function}]
    tokens_in, tokens_out = sum(_tokens(each) for each in messages), _tokens(message)
    return {
        "id": f"chatcmpl-scripted-{time.time_ns():x}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": model.name,
        "system_fingerprint": "scripted",
        "choices": [
            {"index": 0, "message": message, "finish_reason": "tool_calls" if step.command else "stop"},
        ],
        "usage": {
            "prompt_tokens": tokens_in,
            "completion_tokens": tokens_out,
            "total_tokens": tokens_in + tokens_out,
        },
    }


def _tokens(message: Mapping[str, Any]) -> int:
    """Return about as many tokens as a real tokenizer would count: four characters each, and a few for the frame."""
    return 4 + len(json.dumps(message, ensure_ascii=False)) // 4


def _handler(endpoint: ScriptedEndpoint) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # head and body are two writes: the second would wait for an acknowledgement
        server_version = "acrouter-scripted-models"
        sys_version = ""

        def do_GET(self) -> None:
            self._answer(self._models)

        def do_POST(self) -> None:
            self._answer(self._chat)

        def _models(self) -> dict[str, Any]:
            if self.path != "/v1/models":
                raise RequestError(HTTPStatus.NOT_FOUND, f"there is nothing at {self.path}")
            listed = [{"id": name, "object": "model", "created": 0, "owned_by": "scripted"} for name in _MODELS]
            return {"object": "list", "data": listed}

        def _chat(self) -> dict[str, Any]:
            body = self._body()
            if self.path != "/v1/chat/completions":
                raise RequestError(HTTPStatus.NOT_FOUND, f"there is nothing at {self.path}")
            try:
                request = json.loads(body)
            except ValueError as error:
                raise RequestError(HTTPStatus.BAD_REQUEST, f"the body is not JSON: {error}") from error
            if not isinstance(request, dict):
                raise RequestError(HTTPStatus.BAD_REQUEST, "the body must be an object")
            return endpoint.complete(request)

        def _body(self) -> bytes:
            length = self.headers.get("Content-Length", "")
            if not length.isdigit() or int(length) > _LARGEST_BODY_BYTES:
                self.close_connection = True  # what follows cannot be told from a next request
                raise RequestError(HTTPStatus.BAD_REQUEST, "Content-Length is missing or too large")
            return self.rfile.read(int(length))

        def _answer(self, answer: Any) -> None:
            try:
                if not endpoint.is_allowed(self.headers.get("Authorization", "")):
                    self.close_connection = True
                    raise RequestError(HTTPStatus.UNAUTHORIZED, "the API key is missing or wrong")
                self._send(HTTPStatus.OK, answer())
            except RequestError as error:
                kind = "invalid_request_error" if error.status < HTTPStatus.INTERNAL_SERVER_ERROR else "server_error"
                self._send(error.status, {"error": {"message": f"scripted: {error}", "type": kind, "code": None}})

        def _send(self, status: HTTPStatus, value: Mapping[str, Any]) -> None:
            body = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002  (the base class names it so)
            """Say nothing: the standard error belongs to the program around it."""

    return Handler
