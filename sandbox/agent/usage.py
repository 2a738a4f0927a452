"""Tokens and money of one call: the most it can cost before it, what it cost after it."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sandbox.agent.quiet  # noqa: F401  # isort: skip  (before LiteLLM itself)
import litellm

from sandbox.agent.token_bound import most_tokens
from sandbox.agent_types import ModelEndpoint

# Anthropic charges 1.25 times the input price for what it writes into its cache (5 minutes' life):
# https://docs.anthropic.com/en/docs/build-with-claude/prompt-caching
CACHE_WRITE_SURCHARGE = 0.25


@dataclass(frozen=True)
class Estimate:
    """Input tokens before a call: what a tokenizer says, and a number that is hardly ever passed."""

    likely: int
    cautious: int


@dataclass(frozen=True)
class Usage:
    """What one call used and cost. `estimated`: the provider did not say and the tokens were counted here."""

    tokens_in: int
    tokens_out: int
    cost_usd: float
    estimated: bool = False


def caches_prompts(endpoint: ModelEndpoint) -> bool:
    """Return whether prompts get cache marks: Anthropic's models need them, the others cache by themselves."""
    return any(word in endpoint.litellm_id.lower() for word in ("anthropic", "claude"))


def estimate(
    endpoint: ModelEndpoint, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]
) -> Estimate:
    """Count the input tokens of a call; LiteLLM's tokenizer is often another than the model's."""
    most = most_tokens(json.dumps([*messages, *tools], ensure_ascii=False, default=str))
    try:
        counted = int(litellm.token_counter(model=endpoint.litellm_id, messages=list(messages), tools=list(tools)))
    except Exception:  # noqa: BLE001  (it raises what it likes on messages it does not know)
        counted = most
    return Estimate(likely=counted, cautious=max(counted, most))


def most_tokens_of(endpoint: ModelEndpoint, text: str) -> int:
    """Return a number of tokens that a text hardly ever passes: the bound, or LiteLLM's count where that is higher."""
    most = most_tokens(text)
    try:
        return max(most, int(litellm.token_counter(model=endpoint.litellm_id, text=text)))
    except Exception:  # noqa: BLE001  (see estimate)
        return most


def worst_case_usd(endpoint: ModelEndpoint, tokens_in: int) -> float:
    """Return the most that a call with so many input tokens can cost."""
    surcharge = 1 + CACHE_WRITE_SURCHARGE if caches_prompts(endpoint) else 1
    return endpoint.cost_usd(math.ceil(tokens_in * surcharge), endpoint.max_output_tokens)


def actual(endpoint: ModelEndpoint, response: Any, expected: Estimate) -> Usage:
    """Return what a call used, by the provider's own count or, where that is missing, by ours. Never 0."""
    reported = getattr(response, "usage", None)
    tokens_in = _count(reported, "prompt_tokens")
    tokens_out = _count(reported, "completion_tokens")
    counted_out = tokens_out <= 0
    if counted_out:
        tokens_out = _count_text(endpoint, _answer(response))
    if tokens_in <= 0:
        cost = endpoint.cost_usd(expected.cautious, tokens_out)
        return Usage(expected.cautious, tokens_out, cost, estimated=True)
    cached = min(_count(getattr(reported, "prompt_tokens_details", None), "cached_tokens"), tokens_in)
    written = min(_count(reported, "cache_creation_input_tokens"), tokens_in - cached)
    cost = endpoint.cost_usd(tokens_in, tokens_out, cached)
    cost += CACHE_WRITE_SURCHARGE * written * endpoint.input_usd_per_mtok / 1_000_000
    return Usage(tokens_in, tokens_out, cost, estimated=counted_out)


def _answer(response: Any) -> str:
    """Return all that a response says, as text to be counted."""
    messages = [choice.message for choice in getattr(response, "choices", None) or []]
    return " ".join(f"{message.content or ''} {message.tool_calls or ''}" for message in messages)


def _count(holder: Any, name: str) -> int:
    value = getattr(holder, name, None)
    return value if isinstance(value, int) and value > 0 else 0


def _count_text(endpoint: ModelEndpoint, text: str) -> int:
    by_bytes = math.ceil(len(text.encode("utf-8", "replace")) / 3)
    try:
        return max(1, by_bytes, int(litellm.token_counter(model=endpoint.litellm_id, text=text)))
    except Exception:  # noqa: BLE001  (see estimate)
        return max(1, by_bytes)
