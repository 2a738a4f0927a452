"""Makes what a model said fit to be sent, stored and shown."""

from typing import Any

from sandbox.secret_patterns import scrub


def clean(value: Any, *secrets: str | None) -> Any:
    """Return a JSON-like value without secrets, NUL characters and lone surrogates, which Postgres and HTTP refuse."""
    if isinstance(value, str):
        return scrub(value.replace("\0", "").encode("utf-8", "replace").decode(), *secrets)
    if isinstance(value, dict):
        return {str(key): clean(item, *secrets) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [clean(item, *secrets) for item in value]
    return value
