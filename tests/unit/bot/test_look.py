"""What lists and shows, where there is nothing, and where it is asked for what cannot be."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from bot.cli.look import local_url
from bot.cli.main import app
from store.errors import ConfigurationError


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["tasks"], "No task yet. Label an issue, or run `acrouter demo`.\n"),
        (["tasks", "--text", "refund"], "No task is like that.\n"),
        (["models"], "Label an issue, or run `acrouter demo`.\n"),
        (["tasks", "--json"], "[]\n"),
        (["token", "list"], "No token yet. `acrouter token create NAME` makes one.\n"),
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


@pytest.mark.parametrize(
    "arguments",
    [["task", "9" * 30], ["tail", "9" * 30], ["task", "0"], ["token", "create", "ci", "--days", "99999999999"]],
)
def test_a_number_that_cannot_be_is_refused_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 2, done.output
    assert "Input should be" in done.output


def test_a_bench_whose_figures_have_no_place_is_not_begun(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["bench", "decide", "--json", str(tmp_path / "nowhere" / "figures.json")])
    assert isinstance(done.exception, ConfigurationError)
    assert "give a file's name in a folder that exists" in str(done.exception)


def test_the_version_is_told_as_other_programs_do() -> None:
    asked = [CliRunner().invoke(app, arguments) for arguments in (["--version"], ["version"])]
    assert [done.exit_code for done in asked] == [0, 0]
    assert asked[0].output == asked[1].output != ""
