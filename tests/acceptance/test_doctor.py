"""`acrouter doctor` as an operator runs it: all is well, or everything that is not, each with what to do."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.demo.scripted import ScriptedEndpoint
from tests.acceptance.conftest import installed
from tests.support.bugs import SCRIPTED_KEY
from tests.support.github.server import GitHubServer
from tests.support.installation import Installation
from tests.support.repositories import make_repository
from tests.support.services import free_port

pytestmark = [pytest.mark.docker, pytest.mark.node, pytest.mark.timeout(200)]


@pytest.fixture
def installation(tmp_path: Path, github: GitHubServer) -> Iterator[Installation]:
    with (
        ScriptedEndpoint([], api_key=SCRIPTED_KEY) as endpoint,
        installed(tmp_path / "acrouter", github, endpoint, ("scripted-small",), {"ACROUTER_SANDBOX": "docker"}) as made,
    ):
        yield made


def doctor(installation: Installation, *arguments: str) -> tuple[int, str]:
    """Run it in a wide terminal, where no word is broken; return its exit code and what it printed."""
    done = subprocess.run(
        [sys.executable, "-m", "bot", "doctor", *arguments],
        cwd=installation.folder,
        env=installation.environment | {"COLUMNS": "240"},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.stderr == ""
    return done.returncode, done.stdout


def test_a_sound_installation_passes_every_check(installation: Installation) -> None:
    code, said = doctor(installation)
    assert code == 0, said
    assert "wrong" not in said
    for need in ("data folder", "database", "broker", "sandbox", "base image", "scripted-small", "GitHub App", "clock"):
        assert need in said, said
    assert "expected score before its first attempt, by its price: 0." in said
    assert "permissions" in said
    assert "events" in said


def test_everything_that_is_wrong_is_told_at_once_with_what_to_do(installation: Installation) -> None:
    del installation.environment["SCRIPTED_KEY"]
    installation.environment["REDIS_URL"] = f"redis://127.0.0.1:{free_port()}/0"
    installation.environment["ACROUTER_GITHUB_PRIVATE_KEY_FILE"] = "nowhere.pem"
    installation.environment["ACROUTER_JUDGE_MODEL"] = "nobody"
    code, said = doctor(installation)
    assert code == 1
    for told in (
        "Start Redis or correct REDIS_URL",
        "Set DATABASE_URL to Postgres",
        "SCRIPTED_KEY is not set",
        "cannot read nowhere.pem",
        "nobody is not in the pool",
    ):
        assert told in said, said
    rows = [[cell.strip() for cell in row.split("│")] for row in said.splitlines()]
    wrong = [cells for cells in rows if cells[1:2] == ["wrong"]]
    assert len(wrong) == 5, said
    for cells in wrong:
        assert cells[-2], f"no advice in {cells}"


def test_a_key_that_github_refuses_is_told(installation: Installation) -> None:
    installation.environment["ACROUTER_GITHUB_APP_ID"] = "78"
    code, said = doctor(installation)
    assert code == 1
    assert "GitHub refused the key" in said
    assert "Check the App's id" in said


def test_a_key_that_is_no_key_is_told(installation: Installation) -> None:
    (installation.folder / "app.pem").write_text("not a key\n")
    code, said = doctor(installation)
    assert code == 1
    assert "is no private key" in said, said
    assert "docs/setup.md" in said


def test_webhooks_that_do_not_arrive_or_are_refused_are_told(
    installation: Installation, github: GitHubServer, tmp_path: Path
) -> None:
    make_repository(tmp_path / "shop", {"README.md": "# Shop\n"})
    github.create_repository("acme/shop", tmp_path / "shop")
    github.open_issue("The total is off", repository="acme/shop")
    github.settle()
    code, said = doctor(installation)
    assert code == 0, said
    assert "the newest one did not arrive" in said

    installation.environment["ACROUTER_GITHUB_WEBHOOK_SECRET"] = "that of before it was changed at GitHub"
    installation.start_web()
    github.open_issue("The total is still off", repository="acme/shop")
    github.settle()
    code, said = doctor(installation)
    assert code == 0, said
    assert "its secret is not that of the App" in said
    assert "ACROUTER_GITHUB_WEBHOOK_SECRET or _FILE" in said


def test_offline_nobody_is_asked(installation: Installation, github: GitHubServer) -> None:
    before = len(github.requests)
    code, said = doctor(installation, "--offline")
    assert code == 0, said
    assert len(github.requests) == before


def test_a_mistyped_setting_is_told_with_a_suggestion(installation: Installation) -> None:
    installation.environment["ACROUTER_TASK_BUDGET"] = "3"
    code, said = doctor(installation)
    assert code == 1
    assert "Did you mean 'ACROUTER_TASK_BUDGET_USD'?" in said
