"""Finds in a patch what makes tests weaker. Simple by intent: it reads lines, not programs.

Three things count: a deleted test file, fewer assertions than before, added skips and expected failures. Moving a test
to another file looks like a deletion; the reviewer sees both.
"""

import re

from sandbox.patch_text import FileChange

_ASSERTION = re.compile(
    r"^\s*(?:assert\b|self\.assert\w*\(|self\.fail\w*\(|with self\.assert\w+\(|pytest\.fail\()"
    r"|\bpytest\.(?:raises|warns)\(|\bexpect\(|\bassert(?:_eq|_ne)?!\(|\bt\.(?:Error|Fatal)f?\("
)
_TEST = re.compile(r"^\s*(?:async\s+)?def test\w*\(|^\s*(?:it|test)\(|^func Test\w+\(|^\s*#\[test\]")
_SKIP = re.compile(
    r"@(?:pytest\.mark|mark)\.(?:skip|skipif|xfail)\b|\bpytest\.(?:skip|xfail|importorskip)\("
    r"|@(?:unittest\.)?(?:skip|skipIf|skipUnless|expectedFailure)\b|\bself\.skipTest\(|raise (?:unittest\.)?SkipTest"
    r"|\b(?:it|test|describe)\.(?:skip|todo)\(|\bx(?:it|describe)\(|\bt\.Skip\w*\(|#\[ignore"
    r"|\bcollect_ignore(?:_glob)?\b|__test__\s*=\s*False|--ignore=|--deselect"
)


def weakenings(change: FileChange) -> list[str]:
    """Return how a change of a test file weakens the tests, as sentences."""
    if change.kind == "deleted":
        return [f"The test file {change.path!r} is deleted."]
    found = []
    for what, pattern in (("tests", _TEST), ("assertions", _ASSERTION)):
        removed, added = _count(pattern, change.removed), _count(pattern, change.added)
        if removed > added:
            found.append(f"{change.path!r} loses {what}: {removed} removed, {added} added.")
    skips = _count(_SKIP, change.added) - _count(_SKIP, change.removed)
    if skips > 0:
        found.append(f"{change.path!r} adds {skips} skip(s) or expected failure(s).")
    return found


def _count(pattern: re.Pattern[str], lines: tuple[str, ...]) -> int:
    return sum(pattern.search(line) is not None for line in lines)
