"""Dimension and language from words and structure."""

from dataclasses import replace

import numpy as np
import pytest

from routing import Router
from routing.dimension import classify, detect_language
from routing.encoders.hashing import HashingEncoder
from routing.encoders.text import embedding_text
from routing.features import METADATA, features
from routing.metadata import TaskMetadata, metadata
from routing.types import Dimension
from tests.support.routing import make_pool, make_task


@pytest.mark.parametrize(
    ("title", "text", "dimension"),
    [
        ("parse_date crashes on an empty string", "IndexError: string index out of range", Dimension.BUG_FIXING),
        ("Wrong total", "Traceback (most recent call last):\n  File ...\nKeyError: 'a'", Dimension.BUG_FIXING),
        ("Refactor the settings module", "It is 900 lines long.", Dimension.CODE_REFACTORING),
        ("Add tests for the date parser", "Coverage is at 40%.", Dimension.TEST_GENERATION),
        ("Add support for ISO week dates", "It would be nice to have.", Dimension.CODE_GENERATION),
        ("Port the tokenizer to Rust", "For speed.", Dimension.MULTI_LANGUAGE),
        ("Implement Dijkstra's shortest path algorithm", "In O(n log n).", Dimension.ALGORITHM),
        ("Fill in the function body of merge()", "The stub raises NotImplementedError.", Dimension.CODE_COMPLETION),
        ("Explain how does the cache expire items", "Docstrings are missing.", Dimension.CODE_UNDERSTANDING),
        ("Pandas dataframe loses its index", "With numpy 2 and matplotlib.", Dimension.DATA_SCIENCE),
        ("Migrate the code base to Python 3", "Across the repository.", Dimension.AGENTIC_PROGRAMMING),
    ],
)
def test_a_task_gets_the_dimension_that_its_words_speak_for(title: str, text: str, dimension: Dimension) -> None:
    assert classify(title, text) == dimension


def test_a_failed_ci_run_is_a_bug_whatever_its_log_says() -> None:
    assert classify("Refactor everything", "add tests", trigger="ci") == Dimension.BUG_FIXING


def test_the_hidden_comments_of_a_template_say_nothing() -> None:
    hidden = "<!-- Please describe the bug: expected behavior, steps to reproduce, crash -->"

    assert classify("Add support for week dates", hidden + "Please.") == Dimension.CODE_GENERATION


def test_a_text_that_says_nothing_depends_on_its_trigger() -> None:
    assert classify("", "", trigger="label") == Dimension.BUG_FIXING
    assert classify("", "") == Dimension.AGENTIC_PROGRAMMING


@pytest.mark.parametrize(
    ("source", "language"),
    [
        (["a/b.py", "c.py", "d.js"], "python"),
        (["main.go"], "go"),
        (["b.js", "a.py"], "javascript"),  # a tie: the first by name, not by the order of files
        (["README"], ""),
        ([], ""),
        ("see src/lib.rs and Cargo.toml", "rust"),
        ("```ts\nlet a = 1\n```", "typescript"),
        ("Traceback (most recent call last):", "python"),
        ("nothing", ""),
    ],
)
def test_the_language_is_that_of_most_files(source: str | list[str], language: str) -> None:
    assert detect_language(source) == language


@pytest.mark.parametrize(
    "piece", ["<!--", "write ", "\n", "\n ", "a/", ".", " at a(", "A", "_", "add a, ", "``` ", "é", "port a ", "\t"]
)
def test_hostile_text_does_not_stall_the_rules(piece: str) -> None:
    text = piece * (200_000 // len(piece))

    assert classify(text, text) in Dimension
    assert isinstance(detect_language(text), str)
    assert HashingEncoder().encode([embedding_text(text, text)]).shape == (1, 512)


def test_the_metadata_tells_what_the_text_holds() -> None:
    text = 'Traceback (most recent call last):\n  File "a.py", line 1\nKeyError: 1\n\nFAILED tests/test_a.py::test_b'
    task = Router(make_pool()).task("t", text, title="Lookup fails", repository="o/r", trigger="label")

    assert metadata(task) == TaskMetadata("python", len(text) + 12, True, True, "o/r", "label")
    assert metadata(make_task("t", "Add a flag.")) == TaskMetadata("", 11, False, False, "", "")


def test_features_are_the_embedding_and_the_named_metadata() -> None:
    router = Router(make_pool())
    task = router.task("t", "```go\nx := 1\n```\npanic: oops", trigger="ci")
    row = features(replace(task, embedding=router.embed("", task.text)), 512)
    named = dict(zip(METADATA, row[512:].tolist(), strict=True))

    assert np.linalg.norm(row[:512]) == pytest.approx(1.0)
    assert {name for name, value in named.items() if value == 1.0} == {
        "dimension=bug_fixing", "language=go", "trigger=ci", "has_traceback",
    }  # fmt: skip
    assert not features(task, 512)[:512].any()
