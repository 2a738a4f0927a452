"""`acrouter tasks` and `models` where there is nothing to list."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from bot.cli.main import app


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["tasks"], "No task yet. Label an issue, or run `acrouter demo`.\n"),
        (["tasks", "--text", "refund"], "No task is like that.\n"),
        (["models"], "Label an issue, or run `acrouter demo`.\n"),
        (["tasks", "--json"], "[]\n"),
    ],
)
def test_an_empty_list_is_said_to_be_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], told: str
) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    assert done.output.endswith(told)
    assert "┏" not in done.output
