"""The data folder is one user's alone, whichever command makes it, and no part of the repository that it lies in."""

import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from bot.assembly import open_database
from bot.demo.stage import only_demo
from bot.diagnosis import diagnose
from bot.github_app import credentials
from bot.github_app.place import Place
from store.data_dir import make_data_dir
from store.settings import Settings


def by_its_database(folder: Path) -> None:
    open_database(Settings(data_dir=folder, database_url="")).dispose()


def by_doctor(folder: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ACROUTER_DATA_DIR", str(folder))
        diagnose(offline=True)


def by_the_demo(folder: Path) -> None:
    with only_demo(folder / "demo"):
        pass


def by_creating_the_app(folder: Path) -> None:
    made = credentials.Credentials(5, "acrouter", "", "a key", "a secret")
    credentials.keep(made, folder, Place.of("https://github.com"), "https://acrouter.example.com")


@pytest.mark.parametrize("make", [by_its_database, by_doctor, by_the_demo, by_creating_the_app])
def test_nobody_else_reads_it_and_git_does_not_see_it(tmp_path: Path, make: Callable[[Path], None]) -> None:
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    make(tmp_path / ".acrouter")
    assert stat.S_IMODE((tmp_path / ".acrouter").stat().st_mode) == 0o700
    status = ["git", "-C", str(tmp_path), "status", "--porcelain"]
    assert subprocess.run(status, check=True, capture_output=True, text=True).stdout == ""


def test_a_folder_that_is_there_stays_as_it_is(tmp_path: Path) -> None:
    """It may be a repository's own: what it ignores is not for acrouter to say."""
    tmp_path.chmod(0o750)
    make_data_dir(tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o750
