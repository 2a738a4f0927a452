"""When two patches are the same change, and when that says something."""

from collections.abc import Sequence

import pytest

from sandbox.agreement import EarlierPatch, nearest
from sandbox.patch import inspect_patch
from tests.support.patches import change


def share(ours: str, *theirs: str) -> float | None:
    found = nearest(inspect_patch(ours), [EarlierPatch(n, "other", one) for n, one in enumerate(theirs, 1)], None)
    return None if found is None else found.share


def edit(path: str, added: Sequence[str], removed: Sequence[str] = ("x = f( 1 )",)) -> str:
    return change(path, removed=list(removed), added=list(added))


@pytest.mark.parametrize(
    ("path", "added"),
    [
        ("src/a.py", ["x = f(2)"]),
        ("src/a.py", ["x=f(2)", ""]),  # white space and blank lines
        ("src/a.py", ["    # Two, as the manual says.", "x = f(2)"]),
        ("src/a.c", ["/* two */", " * or more", "// or so", "x = f(2)"]),
        ("src/a.sql", ["-- two", "x = f(2)"]),
    ],
)
def test_what_no_program_sees_is_no_difference(path: str, added: list[str]) -> None:
    assert share(edit(path, added), edit(path, ["x = f(2)"])) == 1.0


def test_a_comment_of_another_language_is_a_difference() -> None:
    assert share(edit("src/a.c", ["#define X 2", "x = X"]), edit("src/a.c", ["x = X"])) == pytest.approx(2 / 3)


def test_another_place_another_direction_or_another_count_is_another_change() -> None:
    ours = edit("src/a.py", ["x = f(2)"])
    assert share(ours, edit("src/b.py", ["x = f(2)"])) == 0.0
    assert share(ours, edit("src/a.py", ["x = f( 1 )"], ["x = f(2)"])) == 0.0
    assert share(ours, edit("src/a.py", ["x = f(2)", "x = f(2)"])) == pytest.approx(2 / 3)


def test_tests_are_not_looked_at() -> None:
    ours = edit("src/a.py", ["x = f(2)"]) + change("tests/test_a.py", added=["def test_a(): ..."])
    assert share(ours, edit("src/a.py", ["x = f(2)"])) == 1.0
    assert share(change("tests/test_a.py"), change("tests/test_a.py")) is None


def test_the_nearest_of_the_earlier_patches_counts_and_one_that_cannot_be_read_does_not() -> None:
    ours = edit("src/a.py", ["x = f(2)"])
    report = inspect_patch(ours)
    earlier = [
        EarlierPatch(1, "small", "no patch at all"),
        EarlierPatch(2, "medium", edit("src/a.py", ["x = f(3)"])),
        EarlierPatch(3, "large", ours),
        EarlierPatch(4, "small", ours),
    ]
    found = nearest(report, earlier, None)
    assert found is not None
    assert (found.earlier.attempt, found.share) == (3, 1.0)
    assert nearest(report, earlier[:1], None) is None
    assert nearest(report, (), None) is None
