"""What a command line agent's model costs, and what it may not ask for."""

import base64
import json
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import httpx
import pytest

from sandbox.agent.answers import Told, read_answer
from sandbox.agent.model_proxy import ModelProxy
from sandbox.agent_types import AgentLimits, ModelEndpoint
from tests.support.meters import CountingMeter

KEY = "sk-canary-0123456789abcdef0123"
CHAT = {"choices": [{"message": {"content": "Hello."}}], "usage": {"prompt_tokens": 1000, "completion_tokens": 100}}


def events(*documents: Any) -> bytes:
    return b"".join(b"event: x\ndata: " + json.dumps(d).encode() + b"\n\n" for d in documents) + b"data: [DONE]\n\n"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (json.dumps(CHAT).encode(), Told("Hello.", 1000, 100, 0, 0)),
        (
            events(
                {"choices": [{"delta": {"content": "Hel"}}]},
                {"choices": [{"delta": {"content": "lo."}}]},
                {
                    "choices": [],
                    "usage": {
                        "prompt_tokens": 1000,
                        "completion_tokens": 100,
                        "prompt_tokens_details": {"cached_tokens": 900},
                    },
                },
            ),
            Told("Hello.", 1000, 100, 900, 0),
        ),
        (
            events(
                {"type": "response.output_text.delta", "delta": "Hello."},
                {
                    "type": "response.completed",
                    "response": {
                        "usage": {
                            "input_tokens": 1000,
                            "output_tokens": 100,
                            "input_tokens_details": {"cached_tokens": 10},
                        }
                    },
                },
            ),
            Told("Hello.", 1000, 100, 10, 0),
        ),
        (
            events(
                {
                    "type": "message_start",
                    "message": {
                        "usage": {
                            "input_tokens": 10,
                            "cache_read_input_tokens": 900,
                            "cache_creation_input_tokens": 90,
                            "output_tokens": 1,
                        }
                    },
                },
                {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "Hello."}},
                {"type": "message_delta", "usage": {"output_tokens": 100}},
            ),
            Told("Hello.", 1000, 100, 900, 90),
        ),
        (
            json.dumps(
                {"content": [{"type": "text", "text": "Hello."}], "usage": {"input_tokens": 1000, "output_tokens": 100}}
            ).encode(),
            Told("Hello.", 1000, 100, 0, 0),
        ),
        (b"\xff[" * 50_000, Told("", 0, 0, 0, 0)),
        (b'{"usage": [], "choices": {"a": 1}, "content": 3, "delta": 4}', Told("", 0, 0, 0, 0)),
    ],
)
def test_tokens_and_text_are_read_from_every_kind_of_answer(content: bytes, told: Told) -> None:
    assert read_answer(content) == told


@contextmanager
def upstream(status: int = 200, content: bytes = b"") -> Iterator[tuple[str, list[Any]]]:
    """A provider with one answer; yields its address and the requests as (path, headers, body)."""
    requests: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None: ...

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            requests.append((self.path, {k.lower(): v for k, v in self.headers.items()}, body))
            self.send_response(status)
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


def proxy(url: str, meter: CountingMeter, limits: AgentLimits | None = None, left_s: float = 10.0) -> ModelProxy:
    endpoint = ModelEndpoint("m", "openai/m-1", 1.0, 10.0, 0.1, api_base=url, api_key=KEY, max_output_tokens=500)
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


def test_what_decides_where_it_goes_and_what_it_costs_is_ours() -> None:
    meter = CountingMeter()
    with upstream(content=json.dumps(CHAT).encode()) as (url, requests):
        to = proxy(url, meter)
        body = {"model": "best", "max_completion_tokens": 9999, "n": 5, "stream": True, "messages": []}
        headers = {"Authorization": "Bearer mine", "Host": "evil", "OpenAI-Beta": "x"}
        assert asked(to, "/v1/chat/completions?key=1", body, headers=headers) == (200, json.dumps(CHAT).encode())
    (path, sent_headers, sent) = requests[0]
    assert path == "/v1/chat/completions"
    assert sent == {
        "model": "m-1",
        "max_tokens": 500,
        "stream": True,
        "messages": [],
        "stream_options": {"include_usage": True},
    }
    assert sent_headers["authorization"] == f"Bearer {KEY}"
    assert sent_headers["openai-beta"] == "x"
    assert "evil" not in sent_headers["host"]
    assert to.spent_usd == pytest.approx((1000 * 1.0 + 100 * 10.0) / 1e6)
    assert meter.spent_usd == pytest.approx(to.spent_usd)


def test_what_a_provider_would_do_elsewhere_or_for_more_money_is_not_asked_for() -> None:
    mine = [
        {"type": "function", "name": "exec"},
        {"name": "Bash", "input_schema": {}},
        {"type": "bash_20250124", "name": "bash"},
    ]
    theirs = [
        {"type": "web_search"},
        {"type": "web_search_20250305", "name": "web_search"},
        {"type": "code_execution_20250825", "name": "run"},
        {"type": "mcp", "server_url": "https://evil"},
        {"type": ["web_search"]},
        "web_search",
    ]
    body = {
        "tools": [*mine, *theirs],
        "mcp_servers": [{"url": "https://evil"}],
        "service_tier": "priority",
        "speed": "fast",
        "prediction": {"type": "content", "content": "billed as output where it is wrong"},
        "system": [{"type": "text", "text": "x", "cache_control": {"type": "ephemeral", "ttl": "1h"}}],
    }
    with upstream(content=b"{}") as (url, requests):
        to = proxy(url, CountingMeter())
        asked(to, "/v1/messages", body, headers={"anthropic-beta": "context-1m-2025-08-07, interleaved-thinking"})
        asked(to, "/v1/responses", {"tools": theirs, "tool_choice": "required"})
    (_, headers, sent), (_, _, bare) = requests
    assert sent["tools"] == mine
    assert set(sent) == {"model", "max_tokens", "tools", "system"}
    assert sent["system"][0]["cache_control"] == {"type": "ephemeral"}
    assert headers["anthropic-beta"] == "interleaved-thinking"
    assert set(bare) == {"model", "max_output_tokens"}


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_url", "image_url": {"url": "https://evil/?secret"}},
        {"type": "input_image", "image_url": "http://evil/?secret"},
        {"type": "input_file", "file_url": "https://evil/?secret"},
        {"type": "image", "source": {"type": "url", "url": "https://evil/?secret"}},
        {"type": "document", "source": {"type": "file", "file_id": "somebody-elses"}},
        {"type": "input_file", "file_id": "somebody-elses"},
        {"type": "file", "file": {"file_id": "somebody-elses"}},
    ],
)
def test_a_provider_is_not_made_to_fetch_anything(part: dict[str, Any]) -> None:
    with upstream(content=b"{}") as (url, requests):
        answer = asked(proxy(url, CountingMeter()), "/v1/messages", {"messages": [{"content": [part]}]})
        assert answer is not None
        assert (answer[0], requests) == (400, [])
        inline = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
        call = {"type": "tool_use", "input": {"url": "https://example.org"}}  # the agent's own tool, without network
        assert asked(proxy(url, CountingMeter()), "/v1/messages", {"messages": [{"content": [inline, call]}]})
        assert len(requests) == 1


@pytest.mark.parametrize(
    "body",
    [
        {"previous_response_id": "resp_1", "input": "go on"},
        {"conversation": {"id": "conv_1"}},
        {"prompt": {"id": "with tools of its own"}},
        {"input": [{"type": "item_reference", "id": "msg_1"}]},
        {"input": [{"id": "msg_1"}]},
    ],
)
def test_what_the_provider_keeps_is_not_used_since_it_is_paid_for_but_not_seen(body: dict[str, Any]) -> None:
    meter = CountingMeter()
    with upstream(content=b"{}") as (url, requests):
        answer = asked(proxy(url, meter), "/v1/responses", body)
        assert answer is not None
        assert (answer[0], requests, meter.reserved) == (400, [], {})
        whole = {"input": [{"type": "message", "id": "msg_1", "role": "assistant", "content": []}]}
        assert asked(proxy(url, meter), "/v1/responses", whole) == (200, b"{}")


@pytest.mark.parametrize(
    ("model", "home", "paths"),
    [
        ("openai/m-1", "https://api.openai.com", ["/v1/chat/completions", "/v1/responses"]),
        ("anthropic/m-1", "https://api.anthropic.com", ["/v1/messages"]),
        ("openrouter/anthropic/m-1", "", []),
    ],
)
def test_without_an_address_a_key_goes_to_its_own_provider_alone(
    monkeypatch: pytest.MonkeyPatch, model: str, home: str, paths: list[str]
) -> None:
    sent: dict[str, Any] = {}

    def provider(request: httpx.Request) -> httpx.Response:
        sent[str(request.url)] = json.loads(request.content)
        return httpx.Response(200, content=b"{}")

    client = httpx.Client
    monkeypatch.setattr(httpx, "Client", lambda **options: client(transport=httpx.MockTransport(provider), **options))
    endpoint = ModelEndpoint("m", model, 1.0, 10.0, api_key=KEY)
    to = ModelProxy(endpoint, CountingMeter(), AgentLimits(), remaining_s=lambda: 10.0, after_call=lambda _proxy: None)
    for path in ("/v1/chat/completions", "/v1/responses", "/v1/messages"):
        answer = asked(to, path, {"max_tokens": 9})
        assert answer is not None
        assert answer[0] == (200 if path in paths else 403)
    assert list(sent) == [home + path for path in paths]
    chats = [body for url, body in sent.items() if url.endswith("/chat/completions")]
    # Newer models refuse max_tokens.
    assert chats == [{"max_completion_tokens": 9, "model": "m-1"} for path in paths if "chat" in path]


def test_a_program_that_repeats_what_is_refused_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sandbox.agent.model_proxy.MOST_UNANSWERED", 3)
    meter = CountingMeter()
    with upstream(429) as (url, requests):
        to = proxy(url, meter)
        assert [asked(to, "/v1/responses", {}) for _ in range(4)] == [(429, b"")] * 3 + [None]
    assert to.ended == ("ModelError", "3 requests were not answered.")
    assert (len(requests), meter.open, meter.spent_usd) == (3, [], 0.0)


def test_requests_that_are_no_good_say_nothing_about_the_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sandbox.agent.model_proxy.MOST_UNANSWERED", 3)
    with upstream(400) as (url, _):
        to = proxy(url, CountingMeter())
        assert [asked(to, "/v1/responses", {}) for _ in range(4)] == [(400, b"")] * 3 + [None]
    assert to.ended == ("ProgramError", "3 requests were not answered.")


@pytest.mark.parametrize(
    ("status", "why"), [(200, ""), (400, ""), (429, "HTTP 429"), (503, "HTTP 503"), (401, "HTTP 401")]
)
def test_the_last_call_says_whether_the_endpoint_can_be_used(status: int, why: str) -> None:
    with upstream(status, b"{}") as (url, _):
        to = proxy(url, CountingMeter())
        asked(to, "/v1/responses", {})
    assert to.unusable == (f"m cannot be used: {why}" if why else "")


def test_a_call_that_the_attempts_end_cuts_off_says_nothing_about_the_endpoint() -> None:
    left_s = iter([1.0, 1.0])
    endpoint = ModelEndpoint("m", "openai/m-1", 1.0, 10.0, api_base="http://127.0.0.1:9/v1")
    to = ModelProxy(
        endpoint,
        CountingMeter(),
        AgentLimits(),
        remaining_s=lambda: next(left_s, 0.0),
        after_call=lambda _proxy: None,
    )
    assert asked(to, "/v1/responses", {}) is not None
    assert to.unusable == ""


def test_a_request_that_is_nested_too_deeply_is_refused() -> None:
    deep: Any = []
    for _ in range(900):
        deep = [deep]
    with upstream(content=b"{}") as (url, _):
        answer = asked(proxy(url, CountingMeter()), "/v1/messages", {"messages": deep})
    assert answer is not None
    assert answer[0] in (200, 400)


@pytest.mark.parametrize("value", ["caf\u00e9", "x\r\nx-api-key: mine", "\ud800"])
def test_a_header_that_could_not_be_sent_is_left_out(value: str) -> None:
    with upstream(content=b"{}") as (url, requests):
        assert asked(proxy(url, CountingMeter()), "/v1/messages", {}, headers={"anthropic-beta": value}) == (200, b"{}")
    assert "anthropic-beta" not in requests[0][1]


def test_anthropics_key_goes_into_its_own_header() -> None:
    with upstream(content=b"{}") as (url, requests):
        asked(proxy(url, CountingMeter()), "/v1/messages", {"max_tokens": 10}, headers={"anthropic-version": "2099"})
    headers = requests[0][1]
    assert headers["x-api-key"] == KEY
    assert headers["anthropic-version"] == "2099"
    assert "authorization" not in headers
    assert requests[0][2]["max_tokens"] == 10


@pytest.mark.parametrize(
    ("path", "method", "body"),
    [
        ("/v1/models", "GET", b""),
        ("/v1/chat/completions", "GET", b""),
        ("/v1/embeddings", "POST", {}),
        ("/v1/../admin", "POST", {}),
        ("//evil/v1/messages", "POST", {}),
        ("http://evil/v1/messages", "POST", {}),
        ("/v1/messages", "POST", []),
        ("/v1/messages", "POST", b"{"),
        ("/v1/messages", "POST", b"[" * 100_000),
    ],
)
def test_nothing_else_is_called_and_nothing_is_paid(path: str, method: str, body: Any) -> None:
    meter = CountingMeter()
    with upstream() as (url, requests):
        answer = asked(proxy(url, meter), path, body, method)
    assert answer is not None
    assert answer[0] in (400, 403)
    assert requests == []
    assert meter.reserved == {}


@pytest.mark.parametrize(
    ("status", "content", "paid"),
    [(200, b"no usage", True), (500, b"", True), (529, b"", False), (429, b"", False), (302, b"", False)],
)
def test_what_may_have_been_billed_counts_as_paid(status: int, content: bytes, paid: bool) -> None:
    meter = CountingMeter()
    with upstream(status, content) as (url, requests):
        answer = asked(proxy(url, meter), "/v1/responses", {"input": "hello"})
    assert answer is not None
    assert answer[0] == status
    assert len(requests) == 1, "neither repeated nor redirected"
    assert (meter.spent_usd > 0) is paid
    assert meter.open == []


def test_a_model_that_cannot_be_reached_costs_nothing() -> None:
    meter = CountingMeter()
    to = proxy("http://127.0.0.1:9", meter)
    answer = asked(to, "/v1/responses", {})
    assert answer is not None
    assert (answer[0], meter.spent_usd, meter.open) == (502, 0.0, [])
    assert to.unusable == "m cannot be used: no connection"


@pytest.mark.parametrize(
    ("meter", "limits", "left_s", "ending"),
    [
        (CountingMeter(cap_usd=0.0), AgentLimits(), 10.0, "BudgetExceeded"),
        (CountingMeter(stop_after=0), AgentLimits(), 10.0, "Stopped"),
        (CountingMeter(), AgentLimits(cost_usd=0.0001), 10.0, "LimitsExceeded"),
        (CountingMeter(), AgentLimits(steps=0), 10.0, "LimitsExceeded"),
        (CountingMeter(), AgentLimits(), -1.0, "TimeExceeded"),
    ],
)
def test_the_agent_ends_before_a_call_that_may_not_be_made(
    meter: CountingMeter, limits: AgentLimits, left_s: float, ending: str
) -> None:
    with upstream() as (url, requests):
        to = proxy(url, meter, limits, left_s)
        assert asked(to, "/v1/responses", {}) is None
    assert to.ended is not None
    assert (to.ended[0], requests, meter.open) == (ending, [], [])


def test_an_error_that_repeats_the_key_is_passed_on_without_it() -> None:
    with upstream(400, f"not with {KEY}".encode()) as (url, _):
        assert asked(proxy(url, CountingMeter()), "/v1/responses", {}) == (400, b"not with [secret]")


def test_a_refused_key_ends_the_agent_and_does_not_show() -> None:
    with upstream(401, f"bad key {KEY}".encode()) as (url, _):
        to = proxy(url, CountingMeter())
        assert asked(to, "/v1/responses", {}) is None
    assert to.ended == ("ModelError", "m cannot be used: HTTP 401")


def test_a_line_that_is_misused_is_cut() -> None:
    for piece in (struct.pack(">I", 2**31), struct.pack(">I", 2) + b"{}{}"):
        to = proxy("http://127.0.0.1:9", CountingMeter())
        assert to(piece) is None
        assert to.ended is not None
        assert to.ended[0] == "ProgramError", "that is not the endpoint's"
    to = proxy("http://127.0.0.1:9", CountingMeter())
    assert [to(bytes([b])) for b in struct.pack(">I", 5)] == [b""] * 4, "pieces of any size are put together"
    answer = to(b"hello")
    assert answer is not None
    assert json.loads(answer[4:])["status"] == 400
