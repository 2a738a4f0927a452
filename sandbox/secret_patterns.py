"""Shapes of well-known credentials, to find them in patches and to keep them out of what is stored.

The shapes are the documented prefixes of their issuers (GitHub, AWS, Google, Slack, OpenAI, Anthropic, PEM).
"""

import re

_PATTERNS = {
    "a private key": r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----",
    "an AWS access key": r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
    "a GitHub token": r"\b(?:gh[pousr]_[A-Za-z0-9_]{30,}|github_pat_[A-Za-z0-9_]{40,})",
    "a model provider's key": r"\bsk-[A-Za-z0-9_-]{20,}",
    "a Slack token": r"\bxox[abprs]-[A-Za-z0-9-]{10,}",
    "a Google API key": r"\bAIza[0-9A-Za-z_-]{35}\b",
}
_SHORTEST = 8  # local endpoints take "x" or "none" for a key, which would be replaced all over a text
_COMPILED = {kind: re.compile(pattern) for kind, pattern in _PATTERNS.items()}


def find_secrets(text: str) -> list[str]:
    """Return the kinds of credential that seem to stand in `text`, in words."""
    return [kind for kind, pattern in _COMPILED.items() if pattern.search(text)]


def scrub(text: str, *known: str | None) -> str:
    """Return `text` without the `known` secrets and without anything shaped like one."""
    for secret in known:
        if secret and len(secret) >= _SHORTEST:
            text = text.replace(secret, "[secret]")
    for pattern in _COMPILED.values():
        text = pattern.sub("[secret]", text)
    return text
