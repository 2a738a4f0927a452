"""The bound on a text's tokens, held against the tokenizers that come with LiteLLM: OpenAI's and Anthropic's."""

import base64
import json
import random
import struct
import uuid
from collections.abc import Callable
from functools import cache
from pathlib import Path

import sandbox.agent.quiet  # noqa: F401  # isort: skip  (before LiteLLM itself)
import litellm
import pytest
from litellm.litellm_core_utils.default_encoding import encoding
from tokenizers import Tokenizer

from sandbox.agent.model_proxy import ModelProxy
from sandbox.agent.token_bound import most_tokens
from sandbox.agent.usage import most_tokens_of
from sandbox.agent_types import AgentLimits, ModelEndpoint
from tests.support.meters import CountingMeter

ROOT = Path(__file__).resolve().parents[3]
_RANDOM = random.Random(1)
_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

ORDINARY = {
    "Python": "".join(path.read_text() for path in sorted((ROOT / "sandbox").glob("v*.py"))),
    "Markdown": (ROOT / "docs" / "sandbox.md").read_text(),
    "JSON": (ROOT / "docs" / "acrouter.schema.json").read_text(),
    "CSS": (ROOT / "bot" / "dashboard" / "static" / "dashboard.css").read_text(),
}
ODD = {
    "base64": base64.b64encode(_RANDOM.randbytes(9000)).decode(),
    "hexadecimal": _RANDOM.randbytes(6000).hex(),
    "a hexadecimal dump": _RANDOM.randbytes(6000).hex(" "),
    "digits": "".join(_RANDOM.choices("0123456789", k=6000)),
    "numbers": "\n".join(f"{_RANDOM.random():.6f},{_RANDOM.random():.3f}" for _ in range(500)),
    "UUIDs": "\n".join(str(uuid.UUID(int=_RANDOM.getrandbits(128))) for _ in range(200)),
    "a log": "2026-11-30T06:18:50.123Z ERROR [main-42] a.b.Foo:123 - 0x7f8a3c id=8f14e45f-ceea took 12.34ms\n" * 50,
    "a lock file": (ROOT / "requirements" / "core.txt").read_text()[:20_000],
    "minified JavaScript": (ROOT / "bot" / "dashboard" / "static" / "htmx-2.0.11.min.js").read_text()[:20_000],
    "random letters": "".join(_RANDOM.choices(_LETTERS, k=6000)),
    "letters with blanks between": " ".join(_RANDOM.choices(_LETTERS, k=3000)),
    "marks": "".join(_RANDOM.choices("!@#$%^&*()[]{}<>;:,.?/|~`-+='", k=6000)),
    "Chinese": "今天天气很好。我们去公园散步吧。程序在处理空列表时会抛出异常。" * 50,
    "rare ideographs": "".join(chr(_RANDOM.randint(0x4E00, 0x9FFF)) for _ in range(3000)),
    "Hindi": "यह प्रोग्राम खाली सूची पर विफल हो जाता है। कृपया इसे ठीक करें। " * 50,
    "emoji": "".join(chr(_RANDOM.randint(0x1F300, 0x1FAFF)) for _ in range(2000)),
    "Chinese in escapes": json.dumps("今天天气很好。我们去公园散步吧。" * 50),
    "line ends": "\n" * 3000,
    "lone surrogates": "\ud800" * 100,
}
SHORT_RANDOM_WORDS = {
    f"words of {length} of {letters!r}": " ".join("".join(_RANDOM.choices(letters, k=length)) for _ in range(words))
    for letters, length, words in ((_LETTERS[:26], 15, 100), (_LETTERS[:26], 6, 200), ("acgt", 10, 200))
}
"""Of these the bound alone is too low."""


@cache
def _counters() -> tuple[Callable[[str], int], ...]:
    folder = Path(litellm.__file__).parent / "litellm_core_utils" / "tokenizers"
    anthropic = Tokenizer.from_file(str(folder / "anthropic_tokenizer.json"))
    return (
        lambda text: len(encoding.encode(text, disallowed_special=())),
        lambda text: len(anthropic.encode(text.encode("utf-8", "replace").decode()).ids),
    )


@pytest.mark.parametrize("text", [*ORDINARY.values(), *ODD.values()], ids=[*ORDINARY, *ODD])
def test_no_text_has_more_tokens(text: str) -> None:
    for count in _counters():
        assert most_tokens(text) >= count(text)


@pytest.mark.parametrize("text", [*ODD.values(), *SHORT_RANDOM_WORDS.values()], ids=[*ODD, *SHORT_RANDOM_WORDS])
def test_what_is_paid_for_is_never_less_than_litellms_own_count(text: str) -> None:
    endpoint = ModelEndpoint("m", "openai/m-1", 1.0, 10.0)
    counted = litellm.token_counter(model=endpoint.litellm_id, text=text)
    assert most_tokens_of(endpoint, text) == max(most_tokens(text), counted)


@pytest.mark.parametrize("text", SHORT_RANDOM_WORDS.values(), ids=SHORT_RANDOM_WORDS)
def test_an_agents_call_is_reserved_by_the_tokenizers_count_where_the_bound_is_too_low(text: str) -> None:
    meter = CountingMeter()
    endpoint = ModelEndpoint("m", "openai/m-1", 1_000_000.0, 0.0, api_base="http://127.0.0.1:1", api_key="k")
    proxy = ModelProxy(
        endpoint, meter, AgentLimits(cost_usd=1e9), remaining_s=lambda: 10.0, after_call=lambda _proxy: None
    )
    meter.cap_usd = 1e9
    body = json.dumps({"messages": [{"role": "user", "content": text}]})
    encoded = base64.b64encode(body.encode()).decode()
    message = {"method": "POST", "path": "/v1/chat/completions", "headers": {}, "body": encoded}
    content = json.dumps(message).encode()
    assert proxy(struct.pack(">I", len(content)) + content) is not None
    counted = litellm.token_counter(model=endpoint.litellm_id, text=text)
    assert meter.reserved["r0"] >= counted > most_tokens(text)


@pytest.mark.parametrize("text", ORDINARY.values(), ids=ORDINARY)
def test_the_bound_is_not_far_off_for_what_agents_read(text: str) -> None:
    for count in _counters():
        assert most_tokens(text) <= 2 * count(text)


def test_nothing_is_nothing_and_more_is_not_less() -> None:
    assert most_tokens("") == 0
    assert most_tokens("a") >= 1
    assert most_tokens(ORDINARY["Python"] + "x") >= most_tokens(ORDINARY["Python"])
