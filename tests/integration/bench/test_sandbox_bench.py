"""`acrouter bench sandbox` in its shortest form: every figure is measured, and what must always hold does."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from bench.sandbox.command import Size, measure
from tests.support.bugs import DOWNLOADS

SHORTEST = Size(rounds=1, commands=1, one_by_one=1, at_once=2, megabytes=2, bugs=["xmltodict-none-attribute"])


@pytest.mark.docker
@pytest.mark.timeout(300)
def test_nothing_is_left_behind_and_the_verdicts_agree_with_the_hidden_tests(tmp_path: Path) -> None:
    DOWNLOADS.mkdir(parents=True, exist_ok=True)
    (tmp_path / "downloads").symlink_to(DOWNLOADS)
    said = io.StringIO()
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    figures = measure(Console(file=said, width=120), SHORTEST, scratch, tmp_path)
    assert figures["sandbox.leaks"] == 0
    assert figures["verdict.agreement"] == 1.0
    assert {name for name, value in figures.items() if value <= 0} == {"sandbox.leaks"}
    assert "weakens the test" in said.getvalue()
