"""`acrouter bench decide` in small: everything but the sizes is what the command runs."""

import io

import pytest
from rich.console import Console

from bench import decide


@pytest.fixture(scope="module")
def said() -> io.StringIO:
    return io.StringIO()


@pytest.fixture(scope="module")
def figures(said: io.StringIO) -> dict[str, float]:
    return decide.run(Console(file=said, width=200), entries=300, many=3000)


def test_each_part_is_measured(figures: dict[str, float]) -> None:
    assert set(figures) - {"decide.embedded_p50_ms"} == {
        "decide.p50_ms",
        "decide.startup_s",
        "decide.rss_mb",
        "decide.after_observation_p50_ms",
        "decide.growth_1m",
        "decide.recall_1m",
    }
    assert all(value > 0 for name, value in figures.items() if name != "decide.rss_mb")


def test_an_exact_search_recalls_everything(figures: dict[str, float]) -> None:
    assert figures["decide.recall_1m"] == 1.0


def test_how_the_vectors_lie_is_said_beside_the_recall(figures: dict[str, float], said: io.StringIO) -> None:
    assert figures
    assert "tenth neighbour's median similarity is 0." in said.getvalue()
