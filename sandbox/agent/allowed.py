"""What a command line agent may ask of its model's provider: answers of that model, at the pool's price.

Providers run tools of their own for a model (web search, code execution, remote MCP servers) and fetch what links to
images and documents point at: ways out of the sandbox. Those tools are also billed beside the tokens, and faster tiers,
longer contexts and longer caches at other prices. What a provider keeps (earlier answers, files, prompts) may be
somebody else's of the same key, and is paid for though it does not stand in the request.
"""

import re
from collections.abc import Collection, Mapping
from typing import Any

from sandbox.agent.request_fields import EDITS, FUNCTION, REASONING, TOOL

_NAMED_TOOLS = frozenset({"function", "custom", "namespace"})
"""Types of tools that the agent runs itself, each with a name; Anthropic's plain tools have none of these types."""
_TOOLS = frozenset({"local_shell", "apply_patch", "tool_search"})
"""Types of tools that the agent runs itself, known by their type alone."""
_CLIENT_TOOLS = ("bash_", "text_editor_", "memory_", "tool_search_tool_")
"""Anthropic's own that the agent runs itself, each followed by a date."""
_KEPT_THERE = ("previous_response_id", "conversation", "prompt")
"""What the provider would put before the request (OpenAI's Responses)."""
_MEDIA = re.compile(r"(?:input_)?(?:image|file|document|video|audio)(?:_url)?|container_upload")
"""Types of parts that may name a file that is kept there, or be a link, by whatever name a gateway looks for it."""
_ADDRESS = re.compile(r"\s*[A-Za-z][A-Za-z0-9+.-]*://")
_LINKS = ("image_url", "file_url", "video_url", "audio_url", "file_data")
"""What a part calls a link, or the content itself as `data:` or base64; some are gateways' own."""
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


def allowed_body(body: Mapping[str, Any], fields: Collection[str]) -> dict[str, Any]:
    """Return a request with those of its `fields` that are allowed; the model is not one of them.

    Raises:
        ValueError: it has the provider fetch something, or use what is kept there.
        RecursionError: it is nested too deeply.
    """
    items = body.get("input")
    items = items if isinstance(items, list) else []
    if any(body.get(name) for name in _KEPT_THERE) or any(map(_is_reference, items)):
        raise ValueError("the whole conversation must be in the request itself; what the provider keeps is not used")
    kept: dict[str, Any] = _cleaned({name: value for name, value in body.items() if name in fields})
    if kept.get("store") is not False:
        kept.pop("store", None)
    if isinstance(kept.get("reasoning"), dict):
        kept["reasoning"] = {name: value for name, value in kept["reasoning"].items() if name in REASONING}
    if "context_management" in kept:
        kept["context_management"] = {"edits": _edits(kept["context_management"])}
    if isinstance(kept.get("input"), list):
        kept["input"] = [_with_the_agents_tools(item) for item in kept["input"]]
    kept = _with_the_agents_tools(kept)
    if isinstance(kept.get("functions"), list):  # what OpenAI called tools once
        kept["functions"] = [_only(FUNCTION, one) for one in kept["functions"] if _has_name(one)]
    if not (isinstance(kept.get("tools"), list) and kept["tools"]):
        kept.pop("tools", None)
        kept.pop("tool_choice", None)
    return kept


def _edits(management: object) -> list[Any]:
    edits = management.get("edits") if isinstance(management, dict) else None
    return [
        edit
        for edit in (edits if isinstance(edits, list) else [])
        if isinstance(edit, dict) and str(edit.get("type")).startswith(EDITS)
    ]


def _with_the_agents_tools(holder: Any) -> Any:
    """Return a request, an item of its input, or a tool, without those of its `tools` that the provider would run."""
    if not isinstance(holder, dict) or not isinstance(holder.get("tools"), list):
        return holder
    tools = [_only(TOOL, tool) for tool in holder["tools"] if _is_the_agents(tool)]
    return holder | {"tools": [_with_the_agents_tools(tool) for tool in tools]}


def _is_the_agents(tool: object) -> bool:
    if not isinstance(tool, dict):
        return False
    kind = tool.get("type", "custom")
    if not isinstance(kind, str):
        return False
    return kind in _TOOLS or kind.startswith(_CLIENT_TOOLS) or (kind in _NAMED_TOOLS and _has_name(tool))


def _has_name(tool: object) -> bool:
    """Whether it has a name, as all of the agent's; a gateway knows its provider's by a field (`googleSearch`)."""
    holders = [tool, *(tool.get(kind) for kind in ("function", "custom"))] if isinstance(tool, dict) else []
    return any(isinstance(holder, dict) and isinstance(holder.get("name"), str) for holder in holders)


def _only(fields: Collection[str], tool: Mapping[str, Any]) -> dict[str, Any]:
    """Return a tool with its known fields. What stands below them is of no provider: a schema, words, a grammar."""
    kept = {name: value for name, value in tool.items() if name in fields}
    if isinstance(kept.get("function"), dict):
        kept["function"] = {name: value for name, value in kept["function"].items() if name in FUNCTION}
    return kept


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
    source, kind = item.get("source"), item.get("type")
    if isinstance(source, dict) and source.get("type") in ("url", "file"):
        return True
    if isinstance(kind, str) and _MEDIA.fullmatch(kind) and _names_another_place(item):
        return True
    for name in _LINKS:
        link = item.get(name)
        address = link.get("url") if isinstance(link, dict) else link
        inline = str(address).startswith("data:") or (name == "file_data" and "://" not in str(address))
        if isinstance(address, str) and not inline:
            return True
    return False


def _names_another_place(part: Mapping[str, Any]) -> bool:
    """Whether a part holds a link or a kept file's id, or a field of it does. A text's own words may be a link."""
    for name, value in part.items():
        if name == "file_id" and value:
            return True
        texts = value if isinstance(value, list) else [value]
        if any(isinstance(text, str) and _ADDRESS.match(text) for text in texts):
            return True
        if isinstance(value, dict) and value.get("type") != "text" and _names_another_place(value):
            return True
    return False
