"""Finds in a patch what makes tests weaker. Simple by intent: it reads lines, not programs.

Five things count: a deleted test file, fewer tests or assertions than before, added skips and expected failures (and
what keeps the runner from a test: `.only`, build constraints, ignored paths), assertions that hold whatever happens,
and recorded expectations (snapshots, golden files) that are written anew. Moving a test to another file looks like a
deletion; the reviewer sees both.
"""

import re

from sandbox.patch_text import FileChange
from sandbox.testing.paths import is_test_module

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
    r"\b(?:pytest\.mark|mark)\.(?:skip|skipif|xfail)\b|\bpytest\.(?:skip|xfail|importorskip)\("
    r"|@(?:unittest\.)?(?:skip|skipIf|skipUnless|expectedFailure)\b|\bself\.skipTest\(|raise (?:unittest\.)?SkipTest"
    r"|\b(?:it|test|describe|suite|context)(?:\.concurrent)?\.(?:skip|skipIf|runIf|todo|only|failing|fails)\b"
    r"|\bx(?:it|test|describe)\(|\bf(?:it|describe)\(|\b(?:skip|todo):\s*(?:true|['\"])|\bonly:\s*true"
    r"|\bthis\.skip\(|\bt\.(?:skip|todo)\(|\b[tbf]\.Skip\w*\(|#\[ignore|#\[cfg_attr\([^\]]{0,200}\bignore\b"
    r"|^\s*//\s*(?:go:build|\+build)\b|\btest(?:Path|Regex)?IgnorePatterns\b|--passWithNoTests|\bnorecursedirs\b"
    r"|@(?:Disabled|Ignore)\b|\bassume(?:True|False|That)\(|\bGTEST_SKIP\b"
    r"|\bcollect_ignore(?:_glob)?\b|__test__\s*=\s*False|--ignore=|--deselect"
)
_HOLLOW = re.compile(
    r"^\s*assert\s+(?:True|1|not\s+False)\s*(?:,|#|$)|^\s*assert\b.*\bor\s+True\b|^\s*assert\s+True\s+or\b"
    r"|\bself\.assertTrue\(True\b|\bassertTrue\(true\b|\bassert!\(true\b"
    r"|\bexpect\((true|1)\)\.(?:toBe|toEqual|toStrictEqual)\(\1\)|\bassert(?:\.ok|\.equal)?\(true\b"
)
_INLINE_TEST = re.compile(r"^\s*#\[(?:\w+::)?test\b")
_INLINE_SKIP = re.compile(r"^\s*#\[(?:ignore|cfg_attr\([^\]]{0,200}\bignore)\b")

_SNAPSHOT = re.compile(
    r"(?:.*/)?__snapshots__/.*|.*\.(?:snap|ambr|approved\.\w+)|(?:.*/)?(?:testdata|golden)/.*\.golden"
)
_INLINE_SNAPSHOT = re.compile(r"\btoMatchInlineSnapshot\(|\btoThrowErrorMatchingInlineSnapshot\(")


def weakenings(change: FileChange) -> list[str]:
    """Return how a change of a test file weakens the tests, as sentences."""
    if change.kind == "deleted":
        return [f"The test file {change.path!r} is deleted."]
    if change.kind == "added" and is_test_module(change.path):  # it takes nothing away, whatever it skips
        return []
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
    hollow = _count(_HOLLOW, change.added) - _count(_HOLLOW, change.removed)
    if hollow > 0:
        found.append(f"{change.path!r} adds {hollow} assertion(s) that always hold.")
    if _count(_INLINE_SNAPSHOT, change.removed):
        found.append(f"Recorded expectations in {change.path!r} are written anew.")
    return found


def inline_weakenings(change: FileChange) -> list[str]:
    """Return how a change of a source file weakens the tests in it, which Rust has."""
    if not change.path.endswith(".rs"):
        return []
    lost = _count(_INLINE_TEST, change.removed) - _count(_INLINE_TEST, change.added)
    skips = _count(_INLINE_SKIP, change.added) - _count(_INLINE_SKIP, change.removed)
    found = [f"{change.path!r} loses {lost} test(s)."] if lost > 0 else []
    return [*found, f"{change.path!r} adds {skips} ignored test(s)."] if skips > 0 else found


def _count(pattern: re.Pattern[str], lines: tuple[str, ...]) -> int:
    return sum(pattern.search(line) is not None for line in lines)
