"""What a command line agent may not ask of its model, and what is put right on the way."""

import json
import tracemalloc
from typing import Any

import httpx
import pytest

from sandbox.agent.model_proxy import ModelProxy
from sandbox.agent_types import AgentLimits, ModelEndpoint
from tests.support.meters import CountingMeter
from tests.support.model_provider import KEY, asked, proxy, upstream

CHAT = {"choices": [{"message": {"content": "Hello."}}], "usage": {"prompt_tokens": 1000, "completion_tokens": 100}}


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
        {"type": "container_upload", "file_id": "somebody-elses"},
        {"type": "video_url", "video_url": {"url": "https://evil/?secret"}},
        {"type": "file", "file": {"file_data": "https://evil/?secret"}},
        # As LiteLLM reads them for Gemini, and as others may.
        {"type": "file", "file": "https://evil/?secret"},
        {"type": "file", "file_id": "https://evil/?secret"},
        {"type": "file", "file": {}, "file_id": "gs://evil/secret"},
        {"type": "image", "source": {"url": "https://evil/?secret"}},
        {"type": "video", "video": " HTTPS://evil/?secret"},
        {"type": "video", "video": ["AA==", "https://evil/?secret"]},
        {"type": "input_video", "input": {"of": {"uri": "https://evil/?secret"}}},
    ],
)
def test_a_provider_is_not_made_to_fetch_anything(part: dict[str, Any]) -> None:
    with upstream(content=b"{}") as (url, requests):
        answer = asked(proxy(url, CountingMeter()), "/v1/messages", {"messages": [{"content": [part]}]})
        assert answer is not None
        assert (answer[0], requests) == (400, [])
        inline = {
            "type": "image_url",
            "image_url": {"url": "data:image/png;base64,AA=="},
            "file": {"file_data": "AA=="},
        }
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


def test_a_request_that_is_nested_too_deeply_is_refused() -> None:
    deep: Any = []
    for _ in range(900):
        deep = [deep]
    with upstream(content=b"{}") as (url, _):
        answer = asked(proxy(url, CountingMeter()), "/v1/messages", {"messages": deep})
    assert answer is not None
    assert answer[0] in (200, 400)


@pytest.mark.parametrize("many", [b"[],", b"{},", b"1,"])
def test_no_request_takes_much_more_memory_than_it_has_bytes(many: bytes) -> None:
    content = b'{"messages": [' + many * (12_000_000 // len(many)) + b"[]]}"
    with upstream(content=b"{}") as (url, requests):
        to = proxy(url, CountingMeter())
        tracemalloc.start()
        try:
            answer = asked(to, "/v1/chat/completions", content)
            _, most = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert answer is not None
    assert (answer[0], requests) == (400, [])
    assert most < 10 * len(content), "some copies, among them the test's own"


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
