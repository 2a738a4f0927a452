"""`acrouter tasks` and `models` where there is nothing to list."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from bot.cli.look import local_url
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


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:8000"),
        ("0.0.0.0", "http://127.0.0.1:8000"),  # noqa: S104
        ("::", "http://127.0.0.1:8000"),
        ("::1", "http://[::1]:8000"),
        ("localhost", "http://localhost:8000"),
    ],
)
def test_a_link_names_where_this_machine_finds_the_server(host: str, url: str) -> None:
    assert local_url(host, 8000) == url
