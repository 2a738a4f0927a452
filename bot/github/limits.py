"""Keeps texts within GitHub's limits, cut where it hurts least."""

import re

BODY_LIMIT = 65_536
"""Characters of a comment or a body."""
CHECK_OUTPUT_LIMIT = 65_535
TITLE_LIMIT = 256
_NOTICE = "\n\n*The rest was left out: GitHub takes no longer text.*\n"
_FENCE = re.compile(r"^(`{3,}|~{3,})", re.MULTILINE)


def fit(text: str, limit: int = BODY_LIMIT) -> str:
    """Return `text` if it fits, else its beginning up to a line's end, with open code blocks and details closed.

    GitHub counts characters; a text of wide characters is held to the same number of UTF-16 units, to be safe.
    """
    if _size(text) <= limit:
        return text
    room = limit - len(_NOTICE) - 200  # for what has to be closed
    kept = _first(text, room)
    newline = kept.rfind("\n")
    if newline > room // 2:
        kept = kept[:newline]
    return f"{kept}{_closing(kept)}{_NOTICE}"


def fit_title(text: str) -> str:
    """Return `text` as one line of at most 256 characters."""
    line = " ".join(text.split())
    return line if _size(line) <= TITLE_LIMIT else _first(line, TITLE_LIMIT - 1).rstrip() + "…"


def _closing(text: str) -> str:
    fence = ""
    for match in _FENCE.finditer(text):
        run = match.group(1)
        if not fence:
            fence = run[:100]
        elif run[0] == fence[0] and len(run) >= len(fence):
            fence = ""
    closing = f"\n{fence}" if fence else ""
    open_details = text.count("<details") - text.count("</details>")
    return closing + "\n\n</details>" * min(max(open_details, 0), 5)


def _size(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def _first(text: str, units: int) -> str:
    return text.encode("utf-16-le")[: units * 2].decode("utf-16-le", "ignore")
