"""One call of a model through LiteLLM: where it goes and with which key is ours, whatever the pool's `extra` says."""

from collections.abc import Mapping, Sequence
from typing import Any

import sandbox.agent.quiet  # noqa: F401  # isort: skip  (before LiteLLM itself)
import litellm

from sandbox.agent_types import ModelEndpoint

# They decide where the key goes, and what a call can cost.
_RESERVED = frozenset(
    {"model", "messages", "tools", "api_key", "api_base", "base_url", "max_tokens", "max_completion_tokens", "n"}
    | {"stream", "num_retries", "max_retries", "timeout", "fallbacks", "text_mode", "mock_response"}
)


def complete(
    endpoint: ModelEndpoint, messages: Sequence[Mapping[str, Any]], *, timeout_s: float, **arguments: Any
) -> Any:
    """Return LiteLLM's answer to one request, which is not repeated.

    Args:
        endpoint: the model.
        messages: of the chat.
        timeout_s: of the whole call.
        arguments: of ours, besides those of the endpoint's `extra`.

    Raises:
        Exception: whatever the provider's client raises; `sandbox.agent.failures.understand` says what it means.
    """
    given = {name: value for name, value in endpoint.extra.items() if name not in _RESERVED} | arguments
    if endpoint.api_base:
        # Without a key of its own LiteLLM would send whatever key the process has to this address.
        given |= {"api_base": endpoint.api_base, "api_key": endpoint.api_key or "none"}
    elif endpoint.api_key:
        given["api_key"] = endpoint.api_key
    response = litellm.completion(
        model=endpoint.litellm_id,
        messages=list(messages),
        max_tokens=endpoint.max_output_tokens,
        timeout=timeout_s,
        num_retries=0,
        max_retries=0,
        drop_params=True,
        **given,
    )
    if response is None:
        # What LiteLLM makes of a second 422 after it left out parameters of ours.
        message = "the provider refuses the request's parameters (HTTP 422)"
        raise litellm.exceptions.BadRequestError(message, model=endpoint.litellm_id, llm_provider="")
    return response
