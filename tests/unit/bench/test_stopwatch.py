"""What is acrouter's own time: the stage without what the model and the tests took."""

import pytest

from bench.pipeline import excluded_spans
from bench.stopwatch import Command, Span, own_seconds
from bot.demo.scripted.server import Call


@pytest.mark.parametrize(
    ("excluded", "own"),
    [
        ([], 10.0),
        ([Span(2, 5)], 7.0),
        ([Span(2, 5), Span(4, 6)], 6.0),
        ([Span(4, 6), Span(2, 5)], 6.0),
        ([Span(2, 8), Span(3, 4)], 4.0),
        ([Span(-5, 1), Span(9, 20)], 8.0),
        ([Span(-5, -1), Span(11, 20)], 10.0),
        ([Span(-5, 20)], 0.0),
    ],
)
def test_excluded_spans_count_once_and_only_within_the_stage(excluded: list[Span], own: float) -> None:
    assert own_seconds(Span(0, 10), excluded) == own


def test_only_what_the_model_asked_for_and_tests_are_left_out() -> None:
    call = Call("small", "bug", 0, "ls -a", 1.0, 2.0)
    commands = [
        Command("ls -a", Span(3, 4)),
        Command("git init -q .", Span(5, 6)),
        Command("export PYTEST_ADDOPTS='--junitxml=/tmp/x.xml'\npytest", Span(7, 8)),
        Command("python3 -m doctest /tmp/acrouter-example-0.txt", Span(8, 9)),
    ]
    assert excluded_spans([call], commands) == [Span(1, 2), Span(3, 4), Span(7, 8), Span(8, 9)]
