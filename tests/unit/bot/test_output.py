"""What the commands print can be searched: no name is cut where a table goes to a file."""

import io
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from rich.table import Table

from bot.cli.output import wide_console

NAMES = [f"always_claude-{kind}-4-6-of-the-year" for kind in ("opus", "sonnet", "haiku")]


def printed(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr("sys.stdout", io.StringIO())
    console = wide_console()
    table = Table(*NAMES)
    table.add_row(*NAMES)
    with console.capture() as captured:
        console.print(table)
    return captured.get()


def test_a_file_gets_as_much_room_as_a_table_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert all(printed(monkeypatch).count(name) == 2 for name in NAMES)


def test_who_says_how_wide_it_is_gets_that(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert max(map(len, printed(monkeypatch).splitlines())) == 60


def test_a_terminal_of_ascii_gets_every_table(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bot", "stats"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "last 30 days" in done.stdout


def test_a_full_disk_is_a_message_and_no_traceback(tmp_path: Path) -> None:
    def bound() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000))

    done = subprocess.run(
        [sys.executable, "-m", "bot", "migrate"],
        cwd=tmp_path,
        env=os.environ | {"ACROUTER_DATABASE_URL": f"sqlite:///{tmp_path}/small.sqlite3"},
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=bound,
    )
    assert done.returncode == 2
    assert "The database cannot be used: " in done.stderr
    assert "ACROUTER_DATABASE_URL says where it is" in done.stderr
    assert "Traceback" not in done.stderr
