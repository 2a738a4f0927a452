"""Reads TOML and INI files of a repository, whose writer may want to stall whoever reads them.

Python's own readers take the square of a key's depth, and of the lines that they cannot read: a megabyte takes hours.
"""

import configparser
import re
import tomllib
from collections.abc import Mapping
from typing import Any

_MOST_INI_LINES = 5_000
_DEEPEST_KEY = 32
# What has no end goes to the text's, so that no place is looked at twice.
_STRING_OR_COMMENT = re.compile(
    r'"""(?:\\.|[^\\])*?(?:"{3,5}|\Z)' r"|'''.*?(?:'{3,5}|\Z)" r'|"(?:\\.|[^"\\\n])*"' r"|'[^'\n]*'" r"|#[^\n]*",
    re.DOTALL,
)
_DEEP_KEY = re.compile(rf"(?<![\w-])(?:[\w-]+[ \t]*\.[ \t]*){{{_DEEPEST_KEY}}}")


def read_toml(text: str) -> Mapping[str, Any] | None:
    """Return what a TOML file says, or None where it cannot be read, or not in a moment."""
    # A quoted part of a key becomes a plain one, and so does any other string; a comment's dots are no key's.
    bare = _STRING_OR_COMMENT.sub(lambda found: "" if found[0].startswith("#") else "x", text)
    if _DEEP_KEY.search(bare):
        return None
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError):  # not TOML, or a number that Python makes none of
        return None


def read_ini(text: str) -> configparser.RawConfigParser | None:
    """Return what an INI file says, or None where it cannot be read, or not in a moment."""
    if text.count("\n") > _MOST_INI_LINES:
        return None
    parser = configparser.RawConfigParser(strict=False)
    try:
        parser.read_string(text)
    except configparser.Error:
        return None
    return parser
