"""The bound on a text's tokens, held against the tokenizers that come with LiteLLM: OpenAI's and Anthropic's."""

import base64
import json
import random
import uuid
from collections.abc import Callable
from functools import cache
from pathlib import Path

import sandbox.agent.quiet  # noqa: F401  # isort: skip  (before LiteLLM itself)
import litellm
import pytest
from litellm.litellm_core_utils.default_encoding import encoding
from tokenizers import Tokenizer

from sandbox.agent.token_bound import most_tokens

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


@pytest.mark.parametrize("text", ORDINARY.values(), ids=ORDINARY)
def test_the_bound_is_not_far_off_for_what_agents_read(text: str) -> None:
    for count in _counters():
        assert most_tokens(text) <= 2 * count(text)


def test_nothing_is_nothing_and_more_is_not_less() -> None:
    assert most_tokens("") == 0
    assert most_tokens("a") >= 1
    assert most_tokens(ORDINARY["Python"] + "x") >= most_tokens(ORDINARY["Python"])
