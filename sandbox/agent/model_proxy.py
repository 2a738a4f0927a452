"""The host's end of a command line agent's line: it calls one model, for money that was reserved, and nothing else."""

import base64
import json
import math
import struct
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from sandbox.agent import request_fields
from sandbox.agent.allowed import allowed_body, allowed_headers
from sandbox.agent.answers import Told, read_answer
from sandbox.agent.clean import clean
from sandbox.agent.failures import REFUSED_BUSY
from sandbox.agent.usage import CACHE_WRITE_SURCHARGE, most_tokens_of
from sandbox.agent_types import AgentLimits, Meter, ModelEndpoint
from sandbox.errors import BudgetExceeded, StopRequested

_MESSAGE_LIMIT = 24_000_000
_MOST_PARTS = 1_000_000
"""Objects, lists and commas of a request: each takes some 60 bytes of the host's memory, and a list three of JSON."""
_ANSWER_LIMIT = 16_000_000
_LENGTHS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
_REFUSES_ALL = (401, 403, 404)
"""The key or the model is refused: no other request would be answered. It can also be of a path that is not there or
not for this key, and a program may ask for any. `_MESSAGES` has the key in a header that not all servers look at."""
MOST_UNANSWERED = 100
"""Requests of one agent: each is two rows of the ledger, whatever it cost, and a program repeats them as it likes."""
MOST_REFUSED = 1000
"""Requests of one agent that are not sent on: to read a large one takes a part of a second of the host."""


@dataclass(frozen=True)
class Call:
    """One answered call, for the trajectory."""

    text: str
    tokens_in: int
    tokens_out: int
    cost_usd: float
    at: float


@dataclass(frozen=True)
class _Api:
    provider: str
    """Who speaks it at home; LiteLLM's name."""
    fields: frozenset[str]
    """Those of a request that are sent on."""
    length: str
    """What the request calls its most output tokens, anywhere."""
    length_at_home: str = ""
    """What its provider calls them since; empty: the same."""


_CHAT, _MESSAGES = "/v1/chat/completions", "/v1/messages"
APIS: Mapping[str, _Api] = {
    # https://platform.openai.com/docs/api-reference/chat/create: max_tokens is deprecated, newer models refuse it.
    _CHAT: _Api("openai", request_fields.CHAT, "max_tokens", "max_completion_tokens"),
    "/v1/responses": _Api("openai", request_fields.RESPONSES, "max_output_tokens"),
    _MESSAGES: _Api("anthropic", request_fields.MESSAGES, "max_tokens"),
}
"""The only paths there are."""
HOMES: Mapping[str, str] = {"openai": "https://api.openai.com", "anthropic": "https://api.anthropic.com"}
"""Where they lead if the pool names no `api_base`: a key goes to its own provider and to nobody else."""


def _bases(endpoint: ModelEndpoint) -> dict[str, str]:
    """Return the paths that an agent may ask for, each with the address that it is below."""
    if endpoint.api_base:
        return dict.fromkeys(APIS, endpoint.api_base.rstrip("/").removesuffix("/v1"))
    provider = endpoint.litellm_id.split("/", 1)[0]
    return {path: HOMES[provider] for path, api in APIS.items() if api.provider == provider}


def _own_paths(endpoint: ModelEndpoint) -> frozenset[str]:
    """Return the paths at which the model itself must be: any server at an `api_base` may lack the others."""
    if not endpoint.api_base:
        return frozenset(_bases(endpoint))
    return frozenset({_MESSAGES if endpoint.litellm_id.startswith("anthropic/") else _CHAT})


class ModelProxy:
    """Answers an agent's requests. Fulfils `guest_channel.Relay`: it never raises.

    The model, its key, its address and the most tokens of an answer are ours, whatever a request says. `ended` says why
    the agent is to end: an exit status of `run_agent`'s, and the reason; `failure` is what should have been raised.
    `unusable` says what is wrong with the endpoint, by its last call; empty where it answered, or was not called.
    """

    def __init__(
        self,
        endpoint: ModelEndpoint,
        meter: Meter,
        limits: AgentLimits,
        *,
        remaining_s: Callable[[], float],
        after_call: Callable[["ModelProxy"], None],
    ) -> None:
        self.calls: list[Call] = []
        self.ended: tuple[str, str] | None = None
        self.failure: Exception | None = None
        self.unusable = ""
        self._endpoint = endpoint
        self._meter = meter
        self._limits = limits
        self._remaining_s = remaining_s
        self._after_call = after_call
        self._bases = _bases(endpoint)
        self._own_paths = _own_paths(endpoint)
        self._sent = 0
        self._refused = 0
        self._spent_on_failures = 0.0
        self._buffer = bytearray()

    @property
    def spent_usd(self) -> float:
        return self._spent_on_failures + sum(call.cost_usd for call in self.calls)

    def __call__(self, piece: bytes) -> bytes | None:
        """Take a piece of a message; return the answer to a whole one, nothing before, None if the agent must end."""
        self._buffer += piece
        if len(self._buffer) < 4:
            return b""
        (length,) = struct.unpack(">I", self._buffer[:4])
        if length > _MESSAGE_LIMIT or len(self._buffer) > length + 4:
            self.ended = ("ProgramError", "The agent's line to its model was misused.")
            return None
        if len(self._buffer) < length + 4:
            return b""
        message, self._buffer = bytes(self._buffer[4:]), bytearray()
        try:
            status, kind, content = self._answer(message)
        except BudgetExceeded as error:
            self.ended = ("BudgetExceeded", str(error))
        except StopRequested as error:
            self.ended = ("Stopped", str(error))
        except Exception as error:  # noqa: BLE001  (raised again where the agent's end is waited for)
            self.failure = error
        if self.ended or self.failure:
            return None
        encoded = json.dumps(
            {"status": status, "content_type": kind, "body": base64.b64encode(content).decode()}
        ).encode()
        return struct.pack(">I", len(encoded)) + encoded

    def _answer(self, message: bytes) -> tuple[int, str, bytes]:
        try:
            request = _read(message)
            method, path = str(request["method"]), str(request["path"]).partition("?")[0]
            headers = allowed_headers(request["headers"])
            content = base64.b64decode(request["body"])
            body = _read(content) if content else {}
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return self._not_sent_on(400, "This is no request that could be read.")
        if method != "POST" or path not in self._bases or not isinstance(body, dict):
            return self._not_sent_on(403, f"Only {', '.join(self._bases) or 'nothing'} can be reached from here.")
        try:
            allowed = allowed_body(body, APIS[path].fields)
        except (ValueError, RecursionError) as error:
            return self._not_sent_on(400, f"This request is not sent on: {error}.")
        return self._call(path, headers, self._ours(path, allowed))

    def _not_sent_on(self, status: int, words: str) -> tuple[int, str, bytes]:
        self._refused += 1
        if self._refused > MOST_REFUSED:
            self.ended = ("ProgramError", f"{MOST_REFUSED} requests were refused before they were sent.")
        return _refusal(status, words)

    def _ours(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        api = APIS[path]
        at_home = self._bases[path] == HOMES[api.provider]
        length = (at_home and api.length_at_home) or api.length
        most = self._endpoint.max_output_tokens
        asked = [body[name] for name in _LENGTHS if isinstance(body.get(name), int) and body[name] > 0]
        kept = {name: value for name, value in body.items() if name not in _LENGTHS}
        kept |= {"model": self._endpoint.litellm_id.split("/", 1)[-1], length: min([most, *asked])}
        if kept.get("stream") and path == _CHAT:
            kept["stream_options"] = {"include_usage": True}
        return kept

    def _call(self, path: str, headers: dict[str, str], body: dict[str, Any]) -> tuple[int, str, bytes]:
        content = json.dumps(body).encode()
        worst = self._worst_usd(content)
        if not self._may_call(worst):
            return _refusal(402, "No call is left.")
        reservation = self._meter.reserve(worst)
        self._sent += 1
        cost = worst  # until it is known to be less
        try:
            status, kind, answer = self._send(path, headers, content)
            about_path = self._is_about_path(status, path)
            if not about_path:
                self._note(f"HTTP {status}" if status in (*_REFUSES_ALL, 429) or status >= 500 else "")
            cost = self._cost(status, answer, worst)
        except (httpx.ConnectError, httpx.ConnectTimeout):
            cost = 0.0
            self._note("no connection")
            return _refusal(502, "The model cannot be reached.")
        except httpx.HTTPError as error:
            self._note(type(error).__name__)
            return _refusal(504, "The model did not answer.")
        finally:
            self._spent_on_failures += cost
            self._meter.settle(reservation, cost)
        if status == 200:
            told = read_answer(answer)
            self._spent_on_failures -= cost
            self.calls.append(Call(clean(told.text), told.tokens_in, told.tokens_out, cost, time.time()))
            self._after_call(self)
        elif status in _REFUSES_ALL and self.unusable and not about_path:
            self.ended = ("ModelError", self.unusable)
        return status, kind, answer

    def _is_about_path(self, status: int, path: str) -> bool:
        """Whether a refusal says nothing of the key or the model: the path need not be there, or be for this key."""
        if path in self._own_paths:
            return status == 404 and bool(self.calls)
        alike = any((path == _MESSAGES) == (own == _MESSAGES) for own in self._own_paths)
        return status == 404 or (status in _REFUSES_ALL and (bool(self.calls) or not alike))

    def _note(self, problem: str) -> None:
        """Keep what a call says about the endpoint; one that the attempt's end cut off says nothing."""
        if self._remaining_s() > 0:
            self.unusable = f"{self._endpoint.name} cannot be used: {problem}" if problem else ""

    def _may_call(self, worst: float) -> bool:
        if self._remaining_s() <= 0:
            self.ended = ("TimeExceeded", "")
        elif len(self.calls) >= self._limits.steps:
            self.ended = ("LimitsExceeded", "")
        elif self.spent_usd + worst > self._limits.cost_usd:
            self.ended = ("LimitsExceeded", "The next call could pass the attempt's cost limit.")
        elif self._sent - len(self.calls) >= MOST_UNANSWERED:
            status = "ModelError" if self.unusable and not self.calls else "ProgramError"
            self.ended = (status, f"{MOST_UNANSWERED} requests were not answered.")
        return self.ended is None

    def _send(self, path: str, headers: dict[str, str], content: bytes) -> tuple[int, str, bytes]:
        key = self._endpoint.api_key or "none"
        mine = {"x-api-key": key, "anthropic-version": "2023-06-01"} if path == _MESSAGES else {}
        sent = {**mine, **headers, "authorization": f"Bearer {key}", "content-type": "application/json"}
        if path == _MESSAGES:
            sent.pop("authorization")
        timeout = max(min(self._endpoint.timeout_s, self._remaining_s()), 0.1)
        received = bytearray()
        with (
            httpx.Client(timeout=timeout, follow_redirects=False) as client,
            client.stream("POST", self._bases[path] + path, content=content, headers=sent) as response,
        ):
            for piece in response.iter_bytes():
                received += piece
                if len(received) > _ANSWER_LIMIT or self._remaining_s() <= 0:
                    raise httpx.ReadTimeout("too long an answer")
        answer = bytes(received).replace(key.encode(), b"[secret]") if self._endpoint.api_key else bytes(received)
        return response.status_code, response.headers.get("content-type", "application/json"), answer

    def _worst_usd(self, content: bytes) -> float:
        tokens_in = math.ceil(most_tokens_of(self._endpoint, content.decode()) * (1 + CACHE_WRITE_SURCHARGE))
        return self._endpoint.cost_usd(tokens_in, self._endpoint.max_output_tokens)

    def _cost(self, status: int, answer: bytes, worst: float) -> float:
        if status == 200:
            told = read_answer(answer)
            return self._priced(told) if told.tokens_in and told.tokens_out else worst
        return worst if status >= 500 and status not in REFUSED_BUSY else 0.0

    def _priced(self, told: Told) -> float:
        cost = self._endpoint.cost_usd(told.tokens_in, told.tokens_out, min(told.cached, told.tokens_in))
        return cost + CACHE_WRITE_SURCHARGE * told.written * self._endpoint.input_usd_per_mtok / 1_000_000


def _read(content: bytes) -> Any:
    """Return what JSON says.

    Raises:
        ValueError, RecursionError: it is none, or has too many parts.
    """
    if sum(map(content.count, (b"{", b"[", b","))) > _MOST_PARTS:
        raise ValueError("too many parts")
    return json.loads(content)


def _refusal(status: int, words: str) -> tuple[int, str, bytes]:
    return status, "application/json", json.dumps({"error": {"type": "acrouter", "message": words}}).encode()
