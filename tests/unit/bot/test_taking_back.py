"""A revert is known by what it does, not by what it says."""

import pytest

from bot.handlers.taking_back import takes_back
from workers.ports import FileChange


def change(path: str, *lines: str, old_path: str = "") -> FileChange:
    return FileChange(path, old_path or path, "\n".join(["@@ -1,3 +1,3 @@", *lines]))


FIX = change("cart.py", " def total(prices):", "-    return sum(prices[1:])", "+    return sum(prices)", "+    # all")
REVERT = change(
    "cart.py", " def total(prices):", "-    return sum(prices)", "-    # all", "+    return sum(prices[1:])"
)
NEW = change("tests/test_cart.py", "+def test_total():", "+    assert total([1]) == 1", "+    assert total([]) == 0")
GONE = change("tests/test_cart.py", "-def test_total():", "-    assert total([1]) == 1", "-    assert total([]) == 0")


@pytest.mark.parametrize(
    ("work", "later", "expected"),
    [
        ([FIX], [REVERT], True),
        ([FIX, NEW], [REVERT, GONE], True),
        ([FIX], [REVERT, change("README.md", "+We went back.")], True),
        ([NEW], [change("tests/test_cart.py", "-def test_total():", "-    assert total([1]) == 1")], True),
        ([FIX], [FIX], False),
        ([FIX], [change("README.md", "-Teh shop", "+The shop")], False),
        ([FIX], [change("cart.py", "+import math")], False),
        ([FIX], [change("cart.py", "-    return sum(prices)", "+    return sum(prices[1:])")], False),
        ([FIX], [change("cart.py", "-    return sum(prices)", "-    # all", "+    return math.fsum(prices)")], False),
        ([FIX], [change("other.py", *REVERT.patch.splitlines()[1:])], False),
        ([FIX, NEW], [REVERT], False),
        ([FIX], [], False),
        ([], [REVERT], False),
    ],
)
def test_most_of_what_was_added_goes_and_most_of_what_was_removed_comes_back(
    work: list[FileChange], later: list[FileChange], expected: bool
) -> None:
    assert takes_back(work, later) is expected


def test_a_renamed_file_is_followed_both_ways() -> None:
    work = change("b.py", "-one", "+two", old_path="a.py")
    assert takes_back([work], [change("a.py", "-two", "+one", old_path="b.py")])
    assert not takes_back([work], [change("a.py", "-two", "+one")])


def test_a_file_without_lines_has_to_be_touched() -> None:
    picture = FileChange("logo.png", "logo.png", "")
    assert takes_back([FIX, picture], [REVERT, picture])
    assert not takes_back([FIX, picture], [REVERT])
    assert not takes_back([picture], [REVERT])
