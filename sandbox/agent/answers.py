"""Reads tokens and text out of what providers answer: OpenAI's chat completions and responses, Anthropic's messages.

Answers may be one JSON document or a stream of server-sent events
(https://html.spec.whatwg.org/multipage/server-sent-events.html) that came to its end.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_MOST_TEXT = 20_000


@dataclass(frozen=True)
class Told:
    """What an answer says of itself."""

    text: str
    tokens_in: int
    """All input tokens, those of a cache too; 0: it does not say."""
    tokens_out: int
    cached: int
    written: int
    """Input tokens that were written into the provider's cache."""


def read_answer(content: bytes) -> Told:
    """Return what can be read; of what cannot be read nothing is known, and nothing is raised."""
    usage: dict[str, int] = {}
    text: list[str] = []
    for document in _documents(content):
        for holder in (document, _dict(document.get("message")), _dict(document.get("response"))):
            # Streams tell the numbers in pieces that grow.
            for name, value in _numbers(_dict(holder.get("usage"))):
                usage[name] = max(usage.get(name, 0), value)
        text += _texts(document)
    anthropic_in = usage.get("input_tokens", 0)
    read, written = usage.get("cache_read_input_tokens", 0), usage.get("cache_creation_input_tokens", 0)
    return Told(
        text="".join(text)[:_MOST_TEXT],
        # Anthropic counts what is cached beside the rest, OpenAI within it.
        tokens_in=max(usage.get("prompt_tokens", 0), anthropic_in + read + written),
        tokens_out=max(usage.get("completion_tokens", 0), usage.get("output_tokens", 0)),
        cached=max(usage.get("cached_tokens", 0), read),
        written=written,
    )


def _documents(content: bytes) -> Iterator[Mapping[str, Any]]:
    text = content.decode("utf-8", "replace")
    lines = [line[5:] for line in text.splitlines() if line.startswith("data:")]
    for part in lines or [text]:
        try:
            found = json.loads(part)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict):
            yield found


def _numbers(usage: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    for name, value in usage.items():
        if isinstance(value, int) and not isinstance(value, bool):
            yield name, value
        elif isinstance(value, dict):  # prompt_tokens_details, input_tokens_details
            yield from ((inner, number) for inner, number in value.items() if isinstance(number, int))


def _texts(document: Mapping[str, Any]) -> Iterator[str]:
    for choice in _list(document.get("choices")):
        said = _dict(_dict(choice).get("message")) or _dict(_dict(choice).get("delta"))
        yield _str(said.get("content"))
    for block in _list(document.get("content")):  # Anthropic's message
        yield _str(_dict(block).get("text"))
    for item in _list(document.get("output")):  # OpenAI's response
        for part in _list(_dict(item).get("content")):
            yield _str(_dict(part).get("text"))
    delta = document.get("delta")
    if isinstance(delta, str) and str(document.get("type", "")).endswith("output_text.delta"):
        yield delta
    else:
        yield _str(_dict(delta).get("text"))


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _str(value: object) -> str:
    return value if isinstance(value, str) else ""


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
