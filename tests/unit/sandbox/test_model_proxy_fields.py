"""Which fields of a command line agent's request are sent on, whatever stands at its model's address."""

from typing import Any

import pytest

from tests.support.meters import CountingMeter
from tests.support.model_provider import asked, proxy, upstream

GATEWAYS = {
    # OpenRouter
    "models": ["dearer"],
    "route": "fallback",
    "provider": {"order": ["dearest"]},
    "plugins": [{"id": "web"}],
    "transforms": ["middle-out"],
    "usage": {"include": False},
    # LiteLLM
    "fallbacks": ["dearer"],
    "mock_testing_fallbacks": True,
    "api_base": "http://169.254.169.254/",
    "api_key": "x",
    "metadata": {"tags": ["dearer"]},
    "litellm_metadata": {},
    "user": "somebody-else",
    "num_retries": 9,
    "extra_body": {"models": ["dearer"]},
    "extra_headers": {"x": "y"},
    "anthropic_beta": ["context-1m-2025-08-07"],
    # vLLM and others
    "guided_json": {},
    "chat_template": "{{ x }}",
    "priority": -1,
    "what_comes_next_year": True,
}


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses", "/v1/messages"])
def test_what_a_gateway_would_take_for_another_model_or_address_is_left_out(path: str) -> None:
    with upstream(content=b"{}") as (url, requests):
        assert asked(proxy(url, CountingMeter()), path, {"model": "dearer", "temperature": 0, **GATEWAYS})
    sent = requests[0][2]
    assert sent["model"] == "m-1"
    assert sent.keys() - {"model", "temperature"} <= {"max_tokens", "max_output_tokens"}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        # As aider or opencode ask.
        (
            "/v1/chat/completions",
            {
                "messages": [{"role": "user", "content": "hi"}],
                "tools": [{"type": "function", "function": {"name": "bash", "parameters": {}}}],
                "tool_choice": "auto",
                "temperature": 0,
                "top_p": 1,
                "stop": ["x"],
                "seed": 1,
                "store": False,
                "response_format": {"type": "json_object"},
                "reasoning_effort": "low",
                "parallel_tool_calls": False,
            },
        ),
        # As Codex asks.
        (
            "/v1/responses",
            {
                "instructions": "You are",
                "input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}],
                "tools": [
                    {"type": "function", "name": "shell", "strict": False, "parameters": {}},
                    {"type": "custom", "name": "apply_patch", "format": {"type": "grammar"}},
                    {"type": "namespace", "name": "n", "tools": [{"type": "function", "name": "f"}]},
                ],
                "tool_choice": "auto",
                "parallel_tool_calls": True,
                "store": False,
                "stream": True,
                "reasoning": {"effort": "medium", "summary": "auto"},
                "include": ["reasoning.encrypted_content"],
                "prompt_cache_key": "c",
                "text": {"verbosity": "low"},
            },
        ),
        # As Claude Code asks.
        (
            "/v1/messages",
            {
                "system": [{"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}],
                "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
                "tools": [{"name": "Bash", "description": "runs", "input_schema": {"type": "object"}}],
                "tool_choice": {"type": "auto"},
                "stream": True,
                "temperature": 1,
                "stop_sequences": ["x"],
                "thinking": {"type": "enabled", "budget_tokens": 1024},
                "output_config": {"effort": "high"},
                "context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]},
            },
        ),
    ],
)
def test_what_programs_ask_for_arrives_as_it_is(path: str, body: dict[str, Any]) -> None:
    with upstream(content=b"{}") as (url, requests):
        assert asked(proxy(url, CountingMeter()), path, body)
    ours = {"model", "max_tokens", "max_output_tokens", "stream_options"}
    assert {name: value for name, value in requests[0][2].items() if name not in ours} == body


def test_what_stands_deeper_in_a_request_is_looked_at_too() -> None:
    hosted = {"type": "mcp", "server_url": "https://evil"}
    mine = {"type": "function", "name": "f"}
    body = {
        "input": [{"type": "tool_search_output", "tools": [mine, hosted]}],
        "tools": [{"type": "namespace", "name": "n", "tools": [hosted, mine]}],
        "reasoning": {"effort": "low", "mode": "pro"},
        "store": True,
    }
    edits = [{"type": "compact_20260112"}, {"type": "clear_thinking_20251015"}, "x"]
    messages = {"context_management": {"edits": edits}, "cache_control": {"type": "ephemeral", "ttl": "1h"}}
    with upstream(content=b"{}") as (url, requests):
        to = proxy(url, CountingMeter())
        asked(to, "/v1/responses", body)
        asked(to, "/v1/messages", messages)
        asked(to, "/v1/responses", {"tools": {"0": hosted}})
    responses, anthropic, odd = (sent for _, _, sent in requests)
    assert responses["input"] == [{"type": "tool_search_output", "tools": [mine]}]
    assert responses["tools"] == [{"type": "namespace", "name": "n", "tools": [mine]}]
    assert responses["reasoning"] == {"effort": "low"}
    assert "store" not in responses
    assert anthropic["context_management"] == {"edits": [{"type": "clear_thinking_20251015"}]}
    assert anthropic["cache_control"] == {"type": "ephemeral"}
    assert "tools" not in odd


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses", "/v1/messages"])
def test_a_tool_that_a_gateway_would_know_by_a_field_is_left_out(path: str) -> None:
    # https://docs.litellm.ai/docs/providers/gemini: LiteLLM takes these from `tools` and from `functions`, and has
    # Google search the web, fetch what links point at, or run code.
    hosted = ("googleSearch", "google_search", "urlContext", "url_context", "codeExecution", "googleMaps")
    mine = {"type": "function", "name": "f", "parameters": {"type": "object", "properties": {"googleSearch": {}}}}
    bare: list[dict[str, Any]] = [{name: {}} for name in hosted]
    typed: list[dict[str, Any]] = [{"type": "function", name: {}} for name in hosted]
    beside = [{**mine, name: {}} for name in hosted]
    inside = [{"type": "namespace", "name": "n", "tools": [*bare, *typed, mine]}]
    with upstream(content=b"{}") as (url, requests):
        to = proxy(url, CountingMeter())
        asked(to, path, {"tools": [*bare, *typed, *beside, *inside]})
        asked(to, path, {"functions": [*bare, {"type": "web_search"}, {"name": "f", "urlContext": {}}]})
    tools, functions = (sent for _, _, sent in requests)
    assert tools["tools"] == [*[mine] * len(hosted), {"type": "namespace", "name": "n", "tools": [mine]}]
    assert functions.get("functions", [{"name": "f"}]) == [{"name": "f"}]


def test_a_function_keeps_what_says_how_it_is_called_and_nothing_else() -> None:
    function = {"name": "f", "description": "d", "parameters": {"type": "object"}, "strict": True}
    with upstream(content=b"{}") as (url, requests):
        to = proxy(url, CountingMeter())
        asked(to, "/v1/chat/completions", {"tools": [{"type": "function", "function": {**function, "urlContext": {}}}]})
    assert requests[0][2]["tools"] == [{"type": "function", "function": function}]
