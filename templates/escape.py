"""Filters that let untrusted text stand in Markdown without acting there.

GitHub acts on @mentions, closing keywords with an issue number, cross-references, HTML and links
(https://docs.github.com/en/get-started/writing-on-github). Text from issues, logs, repositories and models must
do none of it.
"""

import re
import shlex
import unicodedata
from collections.abc import Callable

_ZERO_WIDTH_SPACE = "\u200b"
_MARKDOWN_SPECIAL = re.compile(r"([\\`*_{}\[\]()<>#+\-!|~&$])")
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
# `[skip ci]` and its kin, of GitHub Actions and others
# (https://docs.github.com/en/actions/how-tos/manage-workflow-runs/skip-workflow-runs).
_SKIPS_CI = re.compile(r"\[(?=[^\[\]]*\b(?:skip|no)\b[^\[\]]*\])", re.IGNORECASE)
# Bidirectional overrides and isolates can show a text in another order than it has (Trojan Source, CVE-2021-42574).
_BIDI = dict.fromkeys([*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C])


def plain(text: object) -> str:
    """Return text without ANSI sequences, control characters and bidirectional overrides; line ends become \\n."""
    cleaned = _ANSI.sub("", str(text)).replace("\r\n", "\n").replace("\r", "\n").translate(_BIDI)
    return "".join(c for c in cleaned if c in "\n\t" or unicodedata.category(c) != "Cc")


def inline(text: object, limit: int = 200) -> str:
    """Return untrusted text as one line of Markdown that shows itself and does nothing else."""
    line = " ".join(plain(text).split())
    line = cut(line, limit)
    return _defuse(_MARKDOWN_SPECIAL.sub(r"\\\1", line))


def line(text: object, limit: int = 200) -> str:
    """Return untrusted text as one line for places without Markdown: titles and commit messages, which GitHub links.

    In a commit's message words in brackets would keep CI from running, too.
    """
    defused = _SKIPS_CI.sub("[" + _ZERO_WIDTH_SPACE, _defuse(" ".join(plain(text).split())))
    return cut(re.sub(r"#(?=\d)", "#" + _ZERO_WIDTH_SPACE, defused), limit)


def code(text: object, limit: int = 200) -> str:
    """Return untrusted text as an inline code span."""
    line = cut(" ".join(plain(text).split()), limit) or " "
    ticks = "`" * (_longest_run(line) + 1)
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{ticks}{pad}{line}{pad}{ticks}"


def block(text: object, language: str = "", limit: int = 20_000) -> str:
    """Return untrusted text as a fenced code block, in which GitHub neither mentions nor links."""
    body = cut_middle(plain(text).strip("\n"), limit)
    fence = "`" * max(3, _longest_run(body) + 1)
    return f"{fence}{language}\n{body}\n{fence}"


def shell(text: object) -> str:
    """Return untrusted text as one word of a shell line."""
    return shlex.quote(plain(text))


def cut(text: str, limit: int) -> str:
    """Return text of at most `limit` characters, an ellipsis in place of what was cut from its end."""
    return text if len(text) <= limit else text[: max(limit - 1, 0)].rstrip() + "…"


def cut_middle(text: str, limit: int) -> str:
    """Return text of at most about `limit` characters with its middle left out, head and tail kept at line ends."""
    if len(text) <= limit:
        return text
    half = limit // 2
    head = text[:half].rsplit("\n", 1)[0]
    tail = text[-half:].split("\n", 1)[-1]
    return f"{head}\n… {len(text) - len(head) - len(tail)} characters left out …\n{tail}"


def usd(amount: object) -> str:
    """Return an amount of US dollars with as many digits as it needs to be seen."""
    value = float(str(amount))
    sign, size = "-" if value < 0 else "", abs(value)
    return f"{sign}${size:.2f}" if size == 0 or size >= 1 else f"{sign}${size:.4f}"


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall(r"`+", text)), default=0)


def _defuse(text: str) -> str:
    text = re.sub(r"@(?=[A-Za-z0-9])", "@" + _ZERO_WIDTH_SPACE, text)
    text = re.sub(r"(?i)(GH\\?-)(?=\d)", r"\1" + _ZERO_WIDTH_SPACE, text)  # Markdown's backslash is gone by then
    text = re.sub(r"\\#(?=\d)", r"\\#" + _ZERO_WIDTH_SPACE, text)
    # Not at a word's beginning alone: an underscore before it, which is of the word, makes no link a dead one.
    text = re.sub(r"(?i)(https?|ftp)(://)", r"\1:" + _ZERO_WIDTH_SPACE + "//", text)
    return re.sub(r"(?i)(www)\.", r"\1" + _ZERO_WIDTH_SPACE + ".", text)


FILTERS: dict[str, Callable[..., str]] = {
    "plain": plain,
    "inline": inline,
    "line": line,
    "code": code,
    "block": block,
    "shell": shell,
    "usd": usd,
}
