"""The words by which git and GitHub say that work was taken back."""

import time

import pytest

from bot.handlers.reverts import reverts_in

SHA = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize(
    ("text", "commits", "pulls"),
    [
        (f'Revert "Fix"\n\nThis reverts commit {SHA}.', {SHA}, set()),
        ('Revert "Fix (#7)"\n\nReverts acme/shop#7', set(), {7}),
        ("Reverts #7", set(), {7}),
        ("Reverts ACME/Shop#7", set(), {7}),
        ("Reverts other/place#7", set(), set()),
        ("He said it reverts #7", set(), set()),
        ("This reverts commit 12345", set(), set()),
        ("Fix a typo\n\n<!--\nReverts #7\n-->", set(), set()),
        (f"Fix a typo\n\n<!-- This reverts commit {SHA}. -->", set(), set()),
        ("Before:\n\n```\nReverts #7\n```", set(), set()),
        ("Before:\n\n    Reverts #7", set(), set()),
        ("> Reverts #7", set(), set()),
        ("\n".join(f"Reverts #{number}" for number in range(1, 100)), set(), {1, 2, 3, 4, 5}),
        ("", set(), set()),
    ],
)
def test_reverts_are_read_from_messages(text: str, commits: set[str], pulls: set[int]) -> None:
    found = reverts_in(text, "acme/shop")
    assert (set(found.commits), set(found.pulls)) == (commits, pulls)


def test_only_the_beginning_of_a_message_is_read() -> None:
    before = time.process_time()
    assert reverts_in("Reverts #7\n\n" + "* a\n" * 100_000, "acme/shop").pulls == {7}
    assert not reverts_in("a\n" * 3_000 + "\nReverts #7", "acme/shop")
    assert time.process_time() - before < 1
