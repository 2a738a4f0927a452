"""The commands in a comment: `/route fix|retry|stop|status|explain|budget|help`, from the comment's own prose only.

A command is the first token of a line of prose, see `bot.prose`.
"""

import re
import shlex
from dataclasses import dataclass
from enum import StrEnum

from bot.errors import CommandError
from bot.prose import prose_lines
from store.suggest import did_you_mean

_PREFIX = "/route"
_MOST_COMMANDS = 5
_LONGEST_HINT = 2000
_LARGEST_BUDGET_USD = 10_000.0
_MODEL = re.compile(r"[A-Za-z0-9][\w.:/@+\-]{0,199}", re.ASCII)
_STRAIGHT_QUOTES = str.maketrans("“”„‟", '""""')


class Verb(StrEnum):
    FIX = "fix"
    RETRY = "retry"
    STOP = "stop"
    STATUS = "status"
    EXPLAIN = "explain"
    BUDGET = "budget"
    HELP = "help"

    @property
    def starts_work(self) -> bool:
        return self in (Verb.FIX, Verb.RETRY)


_OPTIONS: dict[Verb, tuple[str, ...]] = {Verb.FIX: ("model", "budget", "hint"), Verb.RETRY: ("model", "budget", "hint")}


@dataclass(frozen=True)
class Command:
    verb: Verb
    model: str = ""
    """Name of a model of the pool; empty: the router chooses."""
    budget_usd: float | None = None
    hint: str = ""
    """Untrusted, like the rest of a comment."""


def parse_commands(body: str) -> list[Command]:
    """Return the commands of a comment in their order; none in most comments.

    Raises:
        CommandError: one of them is wrong; the message, for its writer, says what to do. None may be carried out then.
    """
    if _PREFIX not in body.lower():
        return []
    lines = [line for line in prose_lines(body) if line.split(maxsplit=1)[0].lower() == _PREFIX]
    if len(lines) > _MOST_COMMANDS:
        raise CommandError(f"More than {_MOST_COMMANDS} commands in one comment. Send fewer at a time.")
    return [_parse(line) for line in lines]


def _parse(line: str) -> Command:
    words = _split(line)
    if len(words) == 1:
        raise CommandError(f"'{_PREFIX}' needs a command. Send '{_PREFIX} help' for the list.")
    try:
        verb = Verb(words[1].lower())
    except ValueError:
        suggestion = did_you_mean(words[1].lower(), [verb.value for verb in Verb])
        raise CommandError(
            f"There is no command '{words[1][:50]}'.{suggestion} Send '{_PREFIX} help' for the list."
        ) from None
    values = _options(verb, words[2:])
    return Command(
        verb,
        model=_model(values.get("model", "")),
        budget_usd=_budget(values["budget"]) if "budget" in values else None,
        hint=_hint(values.get("hint", "")),
    )


def _split(line: str) -> list[str]:
    lexer = shlex.shlex(line.translate(_STRAIGHT_QUOTES), posix=True)
    lexer.whitespace_split = True
    lexer.quotes = '"'  # an apostrophe is part of a word
    lexer.escapedquotes = '"'
    lexer.commenters = ""
    try:
        return list(lexer)
    except ValueError:
        raise CommandError('A quotation mark or a backslash is left open. Write hint="like this".') from None


def _options(verb: Verb, words: list[str]) -> dict[str, str]:
    allowed = _OPTIONS.get(verb, ())
    values: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        name = name.lower()
        if not equals or name not in allowed:
            if not allowed:
                raise CommandError(f"'{_PREFIX} {verb}' stands alone; '{word[:50]}' was not understood.")
            listing = ", ".join(f"'{option}='" for option in allowed)
            raise CommandError(
                f"'{word[:50]}' is no option of '{_PREFIX} {verb}'.{did_you_mean(name, allowed)} It takes {listing}."
            )
        if name in values:
            raise CommandError(f"'{name}=' was given twice.")
        values[name] = value
    return values


def _model(value: str) -> str:
    if value and not _MODEL.fullmatch(value):
        raise CommandError(f"'{value[:50]}' is not a model's name.")
    return value


def _budget(value: str) -> float:
    try:
        amount = float(value.removeprefix("$"))
    except ValueError:
        amount = 0.0
    if not 0 < amount <= _LARGEST_BUDGET_USD:
        raise CommandError(f"'budget=' takes US dollars above 0, as in 'budget=1.50', not '{value[:50]}'.")
    return amount


def _hint(value: str) -> str:
    if len(value) > _LONGEST_HINT:
        raise CommandError(f"The hint is longer than {_LONGEST_HINT} characters.")
    return value
