"""What a command line agent may ask of its model's provider: answers of that model, at the pool's price.

Providers run tools of their own for a model (web search, code execution, remote MCP servers) and fetch what links to
images and documents point at: ways out of the sandbox. Those tools are also billed beside the tokens, and faster tiers,
longer contexts and longer caches at other prices. What a provider keeps (earlier answers, files, prompts) may be
somebody else's of the same key, and is paid for though it does not stand in the request.
"""

from collections.abc import Mapping
from typing import Any

_TOOLS = frozenset({"function", "custom", "local_shell", "apply_patch", "namespace", "tool_search"})
"""Types of tools that the agent runs itself; Anthropic's plain tools have none."""
_CLIENT_TOOLS = ("bash_", "text_editor_", "memory_", "tool_search_tool_")
"""Anthropic's own that the agent runs itself, each followed by a date."""
_DROPPED = frozenset(
    {
        *("n", "best_of", "service_tier", "speed", "inference_geo", "prompt_cache_retention", "prediction"),  # price
        *("mcp_servers", "container", "web_search_options", "background", "connector_id"),  # ways out
        *("modalities", "audio"),
    }
)
_KEPT_THERE = ("previous_response_id", "conversation", "prompt")
"""What the provider would put before the request (OpenAI's Responses)."""
_FILES = ("input_file", "input_image")
"""Parts of OpenAI's Responses that may name a file that is kept there."""
_PASSED_ON = frozenset({"anthropic-version", "anthropic-beta", "openai-beta"})
_BETAS = ("context-1m", "mcp-client", "code-execution", "web-", "fast-mode", "files-api", "skills", "extended-cache")
"""Anthropic's beta features that go elsewhere or cost more, by how their names begin."""


def allowed_headers(headers: Mapping[str, Any]) -> dict[str, str]:
    """Return those of a request's headers that are sent on, where they can stand in one."""
    kept = {str(n).lower(): str(v) for n, v in headers.items() if str(n).lower() in _PASSED_ON}
    kept = {name: value for name, value in kept.items() if value.isascii() and value.isprintable()}
    if betas := kept.pop("anthropic-beta", ""):
        left = [beta for beta in (part.strip() for part in betas.split(",")) if not beta.startswith(_BETAS)]
        kept |= {"anthropic-beta": ",".join(left)} if left else {}
    return kept


def allowed_body(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return a request without what is not allowed; the model and the length of its answer are not looked at.

    Raises:
        ValueError: it has the provider fetch something, or use what is kept there.
        RecursionError: it is nested too deeply.
    """
    if any(body.get(name) for name in _KEPT_THERE) or any(map(_is_reference, _items(body.get("input")))):
        raise ValueError("the whole conversation must be in the request itself; what the provider keeps is not used")
    kept = {name: _cleaned(value) for name, value in body.items() if name not in _DROPPED}
    if isinstance(kept.get("tools"), list):
        kept["tools"] = [tool for tool in kept["tools"] if _is_the_agents(tool)]
        if not kept["tools"]:
            del kept["tools"]
            kept.pop("tool_choice", None)
    return kept


def _is_the_agents(tool: object) -> bool:
    if not isinstance(tool, dict):
        return False
    kind = tool.get("type", "custom")
    return isinstance(kind, str) and (kind in _TOOLS or kind.startswith(_CLIENT_TOOLS))


def _items(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _is_reference(item: object) -> bool:
    """Whether an item of OpenAI's Responses stands for one that is kept there; its type may be left out."""
    if not isinstance(item, dict):
        return False
    return item.get("type") == "item_reference" or ("id" in item and set(item) <= {"id", "type"})


def _cleaned(value: Any) -> Any:
    """Return a value with short caches: at Anthropic five minutes cost 1.25 times the input price, an hour 2 times."""
    if isinstance(value, dict):
        if _fetches(value):
            raise ValueError("images and documents must be in the request itself; no link or kept file is used")
        return {
            name: {"type": "ephemeral"} if name == "cache_control" and item else _cleaned(item)
            for name, item in value.items()
        }
    return [_cleaned(item) for item in value] if isinstance(value, list) else value


def _fetches(item: Mapping[str, Any]) -> bool:
    source = item.get("source")
    if isinstance(source, dict) and source.get("type") in ("url", "file"):
        return True
    file = item.get("file") if item.get("type") == "file" else item if item.get("type") in _FILES else None
    if isinstance(file, dict) and file.get("file_id"):
        return True
    for name in ("image_url", "file_url"):
        link = item.get(name)
        address = link.get("url") if isinstance(link, dict) else link
        if isinstance(address, str) and not address.startswith("data:"):
            return True
    return False
