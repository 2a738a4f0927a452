"""What somebody says in a Markdown text in their own words, where all can see it.

Quotes, code, HTML, tables, lists and headings are other people's words, examples, or hidden: nothing in them counts.
"""

from itertools import pairwise

from markdown_it import MarkdownIt
from markdown_it.token import Token


def _markdown() -> MarkdownIt:
    markdown = MarkdownIt("commonmark").enable("table")
    # "-- " above a mail's signature would make a heading of the line before it.
    markdown.disable(["lheading", "reference", "text_join"])
    markdown.inline.ruler.enableOnly(["text", "newline", "escape", "backticks", "html_inline"])
    return markdown


_MARKDOWN = _markdown()


def prose_lines(body: str) -> list[str]:
    """Return the lines of top-level paragraphs that begin with plain text."""
    tokens = _MARKDOWN.parse(body)
    lines: list[str] = []
    for before, token in pairwise(tokens):
        if token.type == "inline" and before.type == "paragraph_open" and before.level == 0:
            lines.extend(_lines(token.children or []))
    return lines


def _lines(children: list[Token]) -> list[str]:
    lines: list[str] = []
    current: list[Token] = []
    for child in [*children, Token("softbreak", "br", 0)]:
        if child.type not in ("softbreak", "hardbreak"):
            current.append(child)
            continue
        if current and current[0].type == "text" and current[0].content.strip():
            lines.append("".join(_source(token) for token in current))
        current = []
    return lines


def _source(token: Token) -> str:
    """A token as it was typed; HTML, where comments hide, is left out."""
    match token.type:
        case "code_inline":
            return f"{token.markup}{token.content}{token.markup}"
        case "html_inline":
            return ""
        case "text_special":
            return token.markup
        case _:
            return token.content
