"""What of a task is embedded."""

import re

MAX_CHARS = 20_000
"""Of a text: longer ones are mostly logs, whose end tells less than the beginning of the report."""
_HTML_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)


def embedding_text(title: str, text: str) -> str:
    """Return title and text as one, without the hidden comments of issue templates, cut to `MAX_CHARS`."""
    body = _HTML_COMMENT.sub(" ", text[: 2 * MAX_CHARS])
    whole = body if not title or body.startswith(title) else f"{title}\n\n{body}"
    return whole[:MAX_CHARS].strip()
