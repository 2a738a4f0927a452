"""What a provider's answer to a command line agent says and costs, whichever of its interfaces was asked."""

import json
from typing import Any

import pytest

from sandbox.agent.answers import Told, read_answer

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
