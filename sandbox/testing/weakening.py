"""Finds in a patch what makes tests weaker. Simple by intent: it reads lines, not programs.

Four things count: a deleted test file, fewer tests or assertions than before, added skips and expected failures, and
recorded expectations (snapshots, golden files) that are written anew. Moving a test to another file looks like a
deletion; the reviewer sees both.
"""

import re

from sandbox.patch_text import FileChange

_ASSERTION = re.compile(
    r"^\s*(?:assert\b|self\.assert\w*\(|self\.fail\w*\(|with self\.assert\w+\(|pytest\.fail\()"
    r"|\bpytest\.(?:raises|warns)\(|\bexpect\(|\bassert(?:_eq|_ne)?!\(|\bt\.(?:Error|Fatal)f?\("
    # node:assert, testify, JUnit and AssertJ, C's assert.h and its kin
    r"|\b(?:assert|require|t)\.\w+\(|\bassert\w*\s*\(|\b(?:ASSERT|EXPECT)_\w+\(|\b(?:ck_assert|TEST_ASSERT)\w*\("
)
_TEST = re.compile(
    r"^\s*(?:async\s+)?def test\w*\(|^\s*(?:it|test)\(|^func Test\w+\(|^\s*#\[(?:\w+::)?test\b"
    r"|^\s*@(?:Parameterized)?Test\b"
)
_SKIP = re.compile(
    r"@(?:pytest\.mark|mark)\.(?:skip|skipif|xfail)\b|\bpytest\.(?:skip|xfail|importorskip)\("
    r"|@(?:unittest\.)?(?:skip|skipIf|skipUnless|expectedFailure)\b|\bself\.skipTest\(|raise (?:unittest\.)?SkipTest"
    r"|\b(?:it|test|describe|suite)\.(?:skip|todo|only|failing|fails)\b|\bx(?:it|test|describe)\(|\bf(?:it|describe)\("
    r"|\b(?:skip|todo):\s*(?:true|['\"])|\bthis\.skip\(|\bt\.(?:skip|todo)\(|\bt\.Skip\w*\(|#\[ignore"
    r"|@(?:Disabled|Ignore)\b|\bassume(?:True|False|That)\(|\bGTEST_SKIP\b"
    r"|\bcollect_ignore(?:_glob)?\b|__test__\s*=\s*False|--ignore=|--deselect"
)


_SNAPSHOT = re.compile(
    r"(?:.*/)?__snapshots__/.*|.*\.(?:snap|ambr|approved\.\w+)|(?:.*/)?(?:testdata|golden)/.*\.golden"
)


def weakenings(change: FileChange) -> list[str]:
    """Return how a change of a test file weakens the tests, as sentences."""
    if change.kind == "deleted":
        return [f"The test file {change.path!r} is deleted."]
    if change.kind == "modified" and _SNAPSHOT.fullmatch(change.path) and (change.removed or change.binary):
        return [f"The recorded expectations in {change.path!r} are written anew."]
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
