"""The README's first command, as a user runs it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.docker
@pytest.mark.timeout(600)
def test_the_demo_ends_well_and_says_what_is_scripted(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ACROUTER_")}
    # A real installation's database must stay out of it.
    environment |= {"ACROUTER_DATA_DIR": str(tmp_path), "DATABASE_URL": "postgresql://nobody@127.0.0.1:9/none"}
    done = subprocess.run(
        [sys.executable, "-m", "bot", "demo"],
        cwd=ROOT,
        env=environment | {"COLUMNS": "160"},
        capture_output=True,
        text=True,
        timeout=580,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for words in (
        "The models are scripted",
        "scripted-medium (scripted)",
        "PR 2 is open.",
        "/demo/boltons/pull/2",
        "Pull request 2 is merged.",
        "What changed, and why",
        "scripted-large solved 1 of 1 similar task",
    ):
        assert words in done.stdout
    assert "Traceback" not in done.stdout + done.stderr


def test_the_demo_refuses_a_second_one_in_its_folder(tmp_path: Path) -> None:
    from bot.demo.errors import DemoError
    from bot.demo.stage import only_demo

    with only_demo(tmp_path / "demo"), pytest.raises(DemoError, match="Another `acrouter demo` is running"):
        only_demo(tmp_path / "demo").__enter__()
    with only_demo(tmp_path / "demo"):
        pass
