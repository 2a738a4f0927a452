"""Whether a patch changes what its task's text points at: files that the text names, in prose or in a traceback."""

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

_READ_CHARS = 20_000
_MOST = 200
_PATH = re.compile(r"(?<![\w./\\-])/?(?:[\w.-]{1,100}/){0,20}[\w.-]{1,100}\.[A-Za-z]{1,5}(?![\w/])")
# `package.module.function`, as tracebacks and people write it, is no file; these endings are.
_ENDINGS = """
py pyi js mjs cjs jsx ts tsx go rs java kt scala c h cc cpp cxx hpp cs rb php swift sh lua pl r jl ex exs hs dart sql
html css scss vue json toml yaml yml ini cfg md rst txt
"""
_CODE = frozenset(_ENDINGS.split())
_FOREIGN = ("site-packages/", "dist-packages/", "node_modules/", "lib/python")


def named_files(text: str) -> list[str]:
    """Return the files that a text names, without those of installed packages."""
    found = dict.fromkeys(_PATH.findall(text[:_READ_CHARS].replace("\\", "/")))
    return [
        path
        for path in found
        if PurePosixPath(path).suffix.lstrip(".").lower() in _CODE and not any(part in path for part in _FOREIGN)
    ][:_MOST]


def place(text: str, changed: Sequence[str]) -> float | None:
    """Return 1 where one of the changed files is named in the text, 0 where other files are, None where none is.

    A name counts when it is the end of the changed file's path: a traceback shows paths of another machine, and people
    leave folders out.
    """
    named = named_files(text)
    if not named or not changed:
        return None
    return float(any(_same(name, path) for name in named for path in changed))


def _same(name: str, path: str) -> bool:
    ours, theirs = PurePosixPath(path).parts, PurePosixPath(name.lstrip("/")).parts
    shared = 0
    for a, b in zip(reversed(ours), reversed(theirs), strict=False):
        if a != b:
            break
        shared += 1
    # The file's name, and its folder where both have one: every package has an __init__.py.
    return shared >= min(2, len(ours), len(theirs))
