"""Which paths a glob of `blocked_paths` and `allowed_paths` means, and that none takes long to say so."""

import itertools
import re
import time

import pytest

from sandbox.globs import matches


@pytest.mark.parametrize(
    ("glob", "meant", "others"),
    [
        ("*.lock", ["a.lock", "x/y/a.lock", ".lock"], ["a.locks", "a.lock/b"]),
        ("docs/*", ["docs/a", "docs/"], ["docs/a/b", "x/docs/a"]),
        ("docs/**", ["docs/a", "docs/a/b"], ["docs", "x/docs/a"]),
        ("**/secret", ["secret", "a/secret", "a/b/secret"], ["asecret", "a/bsecret"]),
        ("a/**/b", ["a/b", "a/x/b", "a/x/y/b"], ["a/xb", "ab"]),
        ("a?c/d", ["abc/d"], ["ac/d", "a/c/d"]),
        ("a**c/d", ["ac/d", "a/x/c/d"], ["a/x/c"]),
        ("a.b/[x]", ["a.b/[x]"], ["axb/[x]", "a.b/x"]),
    ],
)
def test_a_glob_means_what_the_documentation_says(glob: str, meant: list[str], others: list[str]) -> None:
    assert [path for path in [*meant, *others] if matches(glob, path)] == meant


def test_a_glob_means_what_a_regular_expression_of_it_would() -> None:
    wild = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    paths = ["".join(letters) for size in range(5) for letters in itertools.product("ab/", repeat=size)]
    for pieces in itertools.product(["a", "b", "/", "*", "**", "**/", "?"], repeat=4):
        glob = "".join(pieces) + "/"
        body = "".join(wild.get(piece) or piece for piece in re.split(r"(\*\*/|\*\*|\*|\?)", glob))
        expected = [path for path in paths if re.fullmatch(body, path)]
        assert [path for path in paths if matches(glob, path)] == expected, glob


@pytest.mark.parametrize(
    "glob", ["*a" * 100 + "/x", "**/" * 90 + "x/y", "**a" * 90 + "/x", "*?" * 100 + "/x/", "**" * 150 + "x/"]
)
def test_no_glob_takes_long_for_any_path(glob: str) -> None:
    before = time.process_time()
    for path in ("a" * 4000, "a/" * 2000):
        assert not matches(glob, path)
    assert time.process_time() - before < 2
