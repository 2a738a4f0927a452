"""Takes secrets out of every text that leaves the process: comments, logs, trajectories."""

import math
import re
import threading
from collections import Counter, deque
from typing import Any

_MASK = "[secret removed]"
# Shorter ones would take ordinary words out of texts.
_SHORTEST = 8
_TEMPORARY_KEPT = 500

_PATTERNS = re.compile(
    r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|\Z)"
    # GitHub's tokens; installation tokens of the newer kind hold a JWT and have ~520 characters.
    r"|\bgh[oprsu]_[A-Za-z0-9_.\-]{16,}"
    r"|\bgithub_pat_[A-Za-z0-9_]{20,}"
    # JSON Web Tokens: two base64url objects and a signature.
    r"|\beyJ[A-Za-z0-9_\-]{8,}\.eyJ[A-Za-z0-9_\-]{4,}\.[A-Za-z0-9_\-]*"
    # Keys of model providers, of Google and of AWS.
    r"|\bsk-[A-Za-z0-9_\-]{16,}"
    r"|\bAIza[A-Za-z0-9_\-]{30,}"
    r"|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"
    # Credentials in a URL or a header.
    r"|(?<=://)[^\s/@:]*:[^\s/@]+(?=@)"
    r"|(?i:(?<=authorization: bearer )|(?<=authorization: token )|(?<=authorization: basic ))[^\s'\"]{8,}",
    re.DOTALL,
)

# Long words of letters and digits, as base64 and hexadecimal keys are.
_LONG_WORD = re.compile(r"(?<![A-Za-z0-9+/=_\-])[A-Za-z0-9+/=_\-]{40,}(?![A-Za-z0-9+/=_\-])")
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_BITS_A_CHARACTER = 4.0
"""Of a random word of base64 of this length there are 4.7 and more; of words, paths and identifiers less than 4."""

_switches = {"high_entropy": False}
_lock = threading.Lock()
_registered: set[str] = set()
_temporary: deque[str] = deque(maxlen=_TEMPORARY_KEPT)
_known: tuple[str, ...] = ()
"""Both, the longest first: sorted when one comes, not for each of the thousands of texts between."""


def register_secret(value: str | None, *, temporary: bool = False) -> None:
    """Have `scrub` remove this exact text too, and each line of a text of several lines.

    A `temporary` one (a token that dies within the hour) is forgotten when many newer ones have come.
    """
    if not value:
        return
    global _known  # noqa: PLW0603  (a process has one set of secrets)
    parts = [part.strip() for part in (value, *value.splitlines()) if len(part.strip()) >= _SHORTEST]
    with _lock:
        if temporary:
            _temporary.extend(part for part in parts if part not in _temporary)
        else:
            _registered.update(part for part in parts if not part.startswith("-----"))
        _known = tuple(sorted({*_registered, *_temporary}, key=len, reverse=True))


def scrub_high_entropy(on: bool) -> None:
    """Say whether `scrub` takes out long words that look random, too."""
    _switches["high_entropy"] = on


def scrub(text: str) -> str:
    """Return `text` with registered secrets and all that looks like a token or a key replaced."""
    for secret in _known:
        text = text.replace(secret, _MASK)
    text = _PATTERNS.sub(_MASK, text)
    return _LONG_WORD.sub(_unless_readable, text) if _switches["high_entropy"] else text


def _unless_readable(match: re.Match[str]) -> str:
    word = match[0]
    kinds = (str.isdigit, str.islower, str.isupper)  # a path or an identifier has seldom all three
    random = all(any(kind(character) for character in word) for kind in kinds) and _entropy(word) >= _BITS_A_CHARACTER
    return _MASK if random and not _COMMIT.fullmatch(word) else word


def _entropy(word: str) -> float:
    """Shannon's entropy of a word's characters, in bits a character."""
    counts = Counter(word).values()
    return -sum(count / len(word) * math.log2(count / len(word)) for count in counts)


def scrub_json(value: Any) -> Any:
    """Return nested dictionaries, lists and texts with every text scrubbed, keys too, and without NUL.

    Postgres keeps no NUL in its JSON.
    """
    if isinstance(value, str):
        return scrub(value.replace("\x00", ""))
    if isinstance(value, bytes):
        return scrub_json(value.decode("utf-8", "replace"))
    if isinstance(value, dict):
        return {scrub_json(key): scrub_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [scrub_json(item) for item in value]
    return value
