"""Untrusted words stand in a text and do nothing there."""

import shlex

import pytest
from markdown_it import MarkdownIt

from templates.escape import block, code, inline, line, plain, shell

GAP = "\u200b"


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("ask @ada", f"ask @{GAP}ada"),
        ("see GH-7 and gh-8", f"see GH\\-{GAP}7 and gh\\-{GAP}8"),
        ("closes #7", f"closes \\#{GAP}7"),
        ("http://e.vil", f"http:{GAP}//e.vil"),
        ("WWW.e.vil", f"WWW{GAP}.e.vil"),
        ("a\n\n# heading\r\n- list", "a \\# heading \\- list"),
        ("| a | cell", "\\| a \\| cell"),
    ],
)
def test_in_a_line_of_markdown_nothing_links_tells_or_begins_anew(words: str, shown: str) -> None:
    assert inline(words) == shown


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("Fix @ada's\nbug", f"Fix @{GAP}ada's bug"),
        ("closes #7, GH-8", f"closes #{GAP}7, GH-{GAP}8"),
    ],
)
def test_a_title_or_a_commits_message_tells_nobody_and_closes_nothing(words: str, shown: str) -> None:
    assert line(words) == shown


@pytest.mark.parametrize(
    "words", ["[skip ci]", "[ci skip]", "[NO CI]", "[skip actions]", "[Actions Skip]", "[ci-skip]", "[skip netlify]"]
)
def test_a_title_or_a_commits_message_keeps_no_ci_from_running(words: str) -> None:
    shown = line(f"Tests of {words} commits [wip]")
    assert words not in shown
    assert shown.replace(GAP, "") == f"Tests of {words} commits [wip]"
    assert "[wip]" in shown


@pytest.mark.parametrize("words", ["a`b", "``", "`", "x``` **y** ```", "a\n\n**b**", "", " "])
def test_no_word_ends_its_code_span(words: str) -> None:
    [_, told, _] = MarkdownIt("commonmark").parse(f"before {code(words)} after")
    assert told.children is not None
    assert [child.type for child in told.children] == ["text", "code_inline", "text"]
    assert told.children[1].content.strip() == " ".join(words.split())


@pytest.mark.parametrize("words", ["```\n**bold**\n```", "````", "a\n```", "~~~"])
def test_no_line_ends_its_block(words: str) -> None:
    [fence, after, *_] = MarkdownIt("commonmark").parse(f"{block(words)}\nafter")
    assert (fence.type, fence.content) == ("fence", f"{words}\n")
    assert after.type == "paragraph_open"


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("\x1b[31mred\x1b[0m \x1b]0;title\x07bell\x07", "red bell"),
        ("abc\u202edcba\u2066x\u200e", "abcdcbax"),
        ("one\r\ntwo\rthree\x00\x0b", "one\ntwo\nthree"),
    ],
)
def test_no_word_steers_a_terminal_or_shows_in_another_order_than_it_has(words: str, shown: str) -> None:
    assert plain(words) == shown


@pytest.mark.parametrize("words", ["main; rm -rf ~", "$(id)", "it's", "`id`", "a b", ""])
def test_a_name_in_a_line_for_the_shell_is_one_word(words: str) -> None:
    assert shlex.split(f"git fetch origin {shell(words)}") == ["git", "fetch", "origin", words]
