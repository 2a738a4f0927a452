"""HTML from templates: escaped, and what strangers wrote stripped of what could mislead an eye."""

import math
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import DiffLexer

import templates
from bot.dashboard import periods
from store.states import TaskState
from templates import escape

_FOLDER = Path(templates.__file__).resolve().parent / "pages"
# Ends the last line: the lexer takes one without an end character by character, each time looking to its end.
_DIFF = DiffLexer(stripnl=False, ensurenl=True)
_CLASSES = HtmlFormatter(nowrap=True, classprefix="hl-")
LONGEST_COLOURED = 60_000
_SHA = re.compile(r"[0-9a-f]{7,64}")

_STATE_WORDS = {
    TaskState.QUEUED: ("waiting", "wait"),
    TaskState.PREPARING: ("preparing", "cool"),
    TaskState.ROUTING: ("choosing a model", "cool"),
    TaskState.ATTEMPTING: ("a model works", "cool"),
    TaskState.VERIFYING: ("running tests", "cool"),
    TaskState.PUBLISHING: ("opening a PR", "cool"),
    TaskState.PUBLISHED: ("PR open", "wait"),
    TaskState.MERGED: ("merged", "good"),
    TaskState.CLOSED: ("PR closed", "bad"),
    TaskState.NO_FIX: ("no fix found", "bad"),
    TaskState.FAILED: ("failed", "bad"),
    TaskState.STOPPED: ("stopped", "quiet"),
    TaskState.REFUSED: ("not started", "quiet"),
}
_VERDICT_WORDS = {
    "verified": ("fixed and verified", "good"),
    "unverified": ("breaks nothing, proves nothing", "wait"),
    "breaking": ("breaks other tests", "bad"),
    "rejected": ("patch not allowed", "bad"),
    "empty": ("no change", "bad"),
}


def environment() -> Environment:
    """Return the environment of the pages. Everything is escaped unless it is Markup."""
    made = Environment(
        loader=FileSystemLoader(_FOLDER),
        undefined=StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "clean": clean,
        "long": long_text,
        "diff": diff,
        "usd": escape.usd,
        "percent": percent,
        "duration": duration,
        "when": when,
        "ago": ago,
        "day": periods.iso,
        "dimension": lambda name: str(name).replace("_", " "),
        "sha": lambda text: text if _SHA.fullmatch(str(text)) else "",
        "state": state_words,
        "verdict": lambda word: _VERDICT_WORDS.get(str(word), (str(word), "quiet")),
    }
    return made


def state_words(state: str) -> tuple[str, str]:
    """Return a task's state in words for people, and how it is coloured."""
    return _STATE_WORDS[TaskState(state)]


def clean(text: object, limit: int = 200) -> str:
    """Return text from outside as one line without controls and direction marks; escaping is the template's."""
    # Cut first, so that megabytes cost nothing; twice as much, since what is stripped may be much of it.
    return escape.cut(" ".join(escape.plain(str(text)[: limit * 4]).split()), limit)


def long_text(text: object, limit: int = 20_000) -> str:
    """Return text from outside with its lines, its middle left out where it is long."""
    return escape.plain(escape.cut_middle(str(text), limit))


def diff(patch: str) -> Markup:
    """Return a patch as coloured HTML; Pygments escapes it."""
    return Markup(highlight(escape.plain(patch[:LONGEST_COLOURED]), _DIFF, _CLASSES))  # noqa: S704


def percent(value: float | None, digits: int = 0) -> str:
    return "\u2013" if value is None else f"{value * 100:.{digits}f}%"


def duration(seconds: float | None) -> str:
    """Return 42 s, 12 min, 3.5 h or 4 d."""
    if seconds is None or math.isnan(seconds):
        return "\u2013"
    for limit, unit, name in ((90, 1, "s"), (90 * 60, 60, "min"), (36 * 3600, 3600, "h")):
        if seconds < limit:
            digits = 1 if name == "h" and seconds < 10 * 3600 else 0
            return f"{seconds / unit:.{digits}f} {name}"
    return f"{seconds / 86_400:.0f} d"


def when(moment: Any) -> Markup:
    """Return a moment as a <time> element, in UTC."""
    at = moment if isinstance(moment, datetime) else periods.moment(float(moment))
    at = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    return Markup('<time datetime="{}">{}</time>').format(
        at.isoformat(timespec="seconds"), at.strftime("%Y-%m-%d %H:%M:%S")
    )


def ago(moment: Any) -> Markup:
    """Return how long ago a moment was, with the moment itself as its title."""
    at = moment if isinstance(moment, datetime) else periods.moment(float(moment))
    at = at.replace(tzinfo=UTC) if at.tzinfo is None else at
    words = f"{duration(max(0.0, (datetime.now(UTC) - at).total_seconds()))} ago"
    return Markup('<time datetime="{}" title="{}">{}</time>').format(
        at.isoformat(timespec="seconds"), at.strftime("%Y-%m-%d %H:%M:%S UTC"), words
    )
