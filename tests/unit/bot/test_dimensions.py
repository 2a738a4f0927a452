"""A label says what kind of task an issue is."""

from typing import get_args

import pytest

from bot.handlers.dimensions import asked_for
from routing.types import Dimension
from store.repo_config import RepositoryConfig, parse_repository_config


@pytest.mark.parametrize(
    ("labels", "dimension"),
    [
        (("acrouter", "dimension:test_generation"), "test_generation"),
        (("Dimension: Data Science",), "data_science"),
        (("dimension:code-refactoring", "dimension:algorithm"), "code_refactoring"),
        (("dimension:large", "bug"), ""),
        (("test_generation",), ""),
        ((), ""),
    ],
)
def test_the_first_label_that_names_a_dimension_counts(labels: tuple[str, ...], dimension: str) -> None:
    assert asked_for(labels) == dimension


def test_a_repository_may_name_every_dimension_and_no_other() -> None:
    allowed = get_args(RepositoryConfig.model_fields["dimension"].annotation)

    assert set(allowed) == {"", *Dimension}
    assert parse_repository_config("dimension: algorithm").dimension == "algorithm"
