"""What the policy model is taught: the questions that the voter will ask."""

import pytest

from routing.encoders.hashing import HashingEncoder
from routing.errors import TrainingError
from routing.training.examples import Example, Result
from routing.training.policy import lessons
from routing.types import Dimension
from tests.support.issue_texts import SUBJECTS
from tests.support.routing import make_pool

DATES, HTTP = SUBJECTS["dates"], SUBJECTS["http"]


def example(key: str, text: str, **scores: float) -> Example:
    results = {model: Result(score, 0.25) for model, score in scores.items()}
    return Example(key, "", text, Dimension.BUG_FIXING, "python", "o/r", results)


def test_a_lesson_shows_similar_tasks_and_never_its_own_results() -> None:
    examples = [
        example("a", DATES[0], small=0.0, large=1.0),
        example("b", DATES[1], medium=0.75),
        example("c", HTTP[0], small=1.0),
    ]
    first, second, third = lessons(examples, make_pool(), HashingEncoder())
    asked = [lesson.messages[1]["content"] for lesson in (first, second, third)]

    assert [lesson.answer for lesson in (first, second, third)] == ["large", "medium", "small"]
    near = asked[0].partition("Attempts at similar tasks:\n")[2].partition("The task")[0]
    assert near.startswith("- medium: score 0.75, $0.250, similarity ")
    assert near.count("similarity") == 1
    assert asked[1].count("similarity") == 2  # both results of the other task on dates
    assert "similarity" not in asked[2]


def test_where_nothing_was_solved_there_is_nothing_to_learn() -> None:
    with pytest.raises(TrainingError, match="none was solved"):
        lessons([example("a", DATES[0], small=0.0)], make_pool(), HashingEncoder())
