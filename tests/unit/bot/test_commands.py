"""Which words in a comment are a command."""

from collections.abc import Callable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bot.commands import Command, Verb, parse_commands
from bot.errors import CommandError


def test_a_command_is_the_first_token_of_a_line_of_prose() -> None:
    assert parse_commands("Thanks!\n/route fix\nmore words") == [Command(Verb.FIX)]
    assert parse_commands("please /route fix") == []


def test_options_are_read() -> None:
    (command,) = parse_commands('/route fix model=gpt-5.4 budget=$1.50 hint="don\'t touch `api.py`"')
    assert command == Command(Verb.FIX, "gpt-5.4", 1.5, "don't touch `api.py`")


def test_what_nobody_sees_is_no_part_of_a_command() -> None:
    assert parse_commands("/route fix <!-- hint=hidden -->") == [Command(Verb.FIX)]


def test_a_phones_quotation_marks_are_quotation_marks() -> None:
    assert parse_commands("/route retry hint=“two words”") == [Command(Verb.RETRY, hint="two words")]


def test_several_commands_keep_their_order() -> None:
    assert [c.verb for c in parse_commands("/route stop\n\n/route retry")] == [Verb.STOP, Verb.RETRY]


@pytest.mark.parametrize(
    "body",
    [
        "> /route fix",
        "> quoted\n/route fix",  # a lazy continuation still belongs to the quote
        "`/route fix`",
        "`code\n/route fix`",
        "```\n/route fix\n```",
        "~~~\n/route fix",
        "    /route fix",
        "<!-- /route fix -->",
        "<!--\n\n/route fix\n\n-->",
        "words <!--\n/route fix\n-->",
        "- /route fix",
        "1. /route fix",
        "# /route fix",
        "| a |\n|---|\n/route fix",
        "\\/route fix",
        "**/route fix**",
        "[/route fix](https://example.com)",
        "\u200b/route fix",
        "/route/api answers 404",
        "/routefix",
        "<div>\n/route fix\n</div>",
    ],
)
def test_what_is_not_prose_is_no_command(body: str) -> None:
    assert parse_commands(body) == []
    assert parse_commands(body.replace("\n", "\r\n")) == []


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("/route", "needs a command"),
        ("/route fxi", "Did you mean 'fix'?"),
        ("/route stop now", "stands alone"),
        ("/route fix modle=x", "Did you mean 'model'?"),
        ("/route fix please", "It takes 'model=', 'budget=', 'hint='"),
        ("/route fix budget=-1", "above 0"),
        ("/route fix budget=nan", "above 0"),
        ("/route fix budget=inf", "above 0"),
        ("/route fix budget=1 budget=2", "twice"),
        ('/route fix hint="open', "left open"),
        ("/route fix model=$(id)", "not a model's name"),
        (f'/route fix hint="{"x" * 2001}"', "longer than 2000"),
        ("/route help\n" * 6, "More than 5"),
    ],
)
def test_a_wrong_command_is_answered_with_what_to_do(body: str, words: str) -> None:
    with pytest.raises(CommandError) as caught:
        parse_commands(body)
    assert words in str(caught.value)


def test_a_mails_signature_does_not_hide_a_command() -> None:
    assert parse_commands("/route fix\n-- \nAda") == [Command(Verb.FIX)]


def test_budget_stands_alone() -> None:
    assert parse_commands("/route budget") == [Command(Verb.BUDGET)]
    with pytest.raises(CommandError, match="stands alone"):
        parse_commands("/route budget 5")


_PIECES = st.lists(
    st.sampled_from(
        [
            *("/route fix", "/route", "hint=", " ", "\n", "\r\n", "    ", "\t", "x", '"', "\x00", "\u200b", "\u202e"),
            *("> ", "```", "`", "<!--", "-->", "|", "-", "\\", "*", "<b>", "[", "](", "# ", "1. ", "&#47;"),
        ]
    ),
    max_size=60,
).map("".join)


@given(_PIECES)
@example("`" * 3000 + "\n/route fix")
@example("/route fix " * 5000)
@example("> " * 20_000 + "/route fix")
@example("[" * 30_000 + "\n/route fix")
@settings(deadline=None, max_examples=300)
def test_any_markdown_gives_commands_or_one_clear_error(body: str) -> None:
    try:
        commands = parse_commands(body)
    except CommandError:
        commands = [Command(Verb.HELP)]  # a wrong command stands on a command all the same
    assert not commands or "/route" in body


@given(_PIECES)
@settings(deadline=None, max_examples=200)
def test_nothing_in_a_quote_or_a_fence_is_ever_a_command(body: str) -> None:
    quoted = "\n".join(f"> {line}" for line in body.splitlines())
    assert parse_commands(quoted) == []
    assert parse_commands(f"{'`' * 70}\n{body}\n{'`' * 70}") == []


COMMAND = "/route fix"
_WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\r\n<>`~|#*_[]\\&=-+\t/"), max_size=40)
_PROSE = _WORDS.map(str.strip).filter(lambda text: not text[:1].isdigit()).map(lambda text: f"so {text}")
_EXAMPLES: list[Callable[[str], str]] = [
    lambda text: "\n".join(f"> {line}" for line in text.split("\n")),
    lambda text: f"```\n{text}\n```",
    lambda text: f"~~~~sh\n{text}\n~~~~",
    lambda text: "\n".join(f"    {line}" for line in text.split("\n")),
    lambda text: f"<!--\n{text}\n-->",
    lambda text: f"<details>\n{text}\n</details>",
    lambda text: "\n".join(f"- {line}" for line in text.split("\n")),
    lambda text: f"| say | that |\n|---|---|\n| {text.splitlines()[0]} | x |",
    lambda text: f"`{text.splitlines()[0]}`",
    lambda text: f"# {text.splitlines()[0]}",
    lambda text: f"**{text.splitlines()[0]}**",
    lambda text: f"\u200b{text.splitlines()[0]}",
    lambda text: f"as in {text.splitlines()[0]}",
]
_EXAMPLE = st.builds(lambda show, before: show(f"{COMMAND}\n{before}"), st.sampled_from(_EXAMPLES), _PROSE)
_PARAGRAPHS = st.lists(
    st.one_of(st.tuples(st.just("prose"), _PROSE), st.tuples(st.just("example"), _EXAMPLE), st.just(("go", COMMAND))),
    max_size=8,
)


@given(_PARAGRAPHS, st.sampled_from(["\n", "\r\n"]), st.booleans())
@settings(deadline=None, max_examples=250)
def test_of_markdown_of_every_kind_exactly_the_commands_in_its_own_prose_count(
    paragraphs: list[tuple[str, str]], newline: str, long: bool
) -> None:
    meant = sum(kind == "go" for kind, _ in paragraphs)
    parts = [part for _, part in paragraphs]
    if long:  # to the last character that GitHub takes
        parts.append("so " + "x" * (65_536 - sum(map(len, parts)) - 2 * len(parts) - 3))
    body = "\n\n".join(parts).replace("\n", newline)
    if meant > 5:
        with pytest.raises(CommandError, match="More than 5"):
            parse_commands(body)
    else:
        assert len(parse_commands(body)) == meant
