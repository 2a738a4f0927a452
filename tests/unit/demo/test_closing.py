"""What the demo says at its end can be typed where it was started."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from bot.demo.closing import closing_words, command_as_typed


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A command in a folder's own environment, which is not on the PATH."""
    made = tmp_path / ".venv" / "bin" / "acrouter"
    made.parent.mkdir(parents=True)
    made.write_text("#!/bin/sh\necho found\n")
    made.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    return made


def typed(command: str) -> str:
    return subprocess.run(["sh", "-c", command], check=True, capture_output=True, text=True).stdout.strip()


def test_started_by_make_it_is_called_by_its_path(program: Path) -> None:
    command = command_as_typed(".venv/bin/acrouter")
    assert command == ".venv/bin/acrouter"
    assert typed(command) == "found"


def test_on_the_path_it_is_called_by_its_name(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    assert command_as_typed(str(program)) == "acrouter"
    other = program.parents[2] / "another one" / "acrouter"
    other.parent.mkdir()
    other.symlink_to("/bin/true")
    assert shlex.split(command_as_typed(str(other))) == [str(other)], "that on the PATH is another installation's"


def test_without_a_program_it_is_called_as_a_module(program: Path) -> None:
    assert shlex.split(command_as_typed("/src/bot/__main__.py")) == [sys.executable, "-m", "bot"]


def test_who_keeps_the_demo_up_is_not_told_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [".venv/bin/acrouter"])
    assert ".venv/bin/acrouter demo --keep" in closing_words(scripted=True, keep=False)
    kept = closing_words(scripted=False, keep=True)
    assert "--keep" not in kept
    assert "demo --model" not in kept
    lines = [line for line in kept.splitlines() if "acrouter" in line]
    assert len(lines) == 3
    assert all(".venv/bin/acrouter " in line for line in lines)
