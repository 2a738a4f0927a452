"""Mistakes in the environment: each is one sentence that names the setting."""

from pathlib import Path

import pytest

from store.database import Database
from store.errors import ConfigurationError
from store.settings import load_settings


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("REDIS_URL", "nonsense", "must be redis://"),
        ("REDIS_URL", "rdis://127.0.0.1", "must be redis://"),
        ("ACROUTER_PORT", "99999999", "port: "),
        ("ACROUTER_TASK_BUDGET_USD", "inf", "task_budget_usd: "),
        ("ACROUTER_DAY_BUDGET_USD", "nan", "day_budget_usd: "),
    ],
)
def test_a_wrong_setting_is_named(monkeypatch: pytest.MonkeyPatch, name: str, value: str, told: str) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigurationError, match=told):
        load_settings()


@pytest.mark.parametrize("url", ["postgresql+asyncpg://u:p@h/x", "sqlite+aiosqlite:///x.db"])
def test_a_driver_that_is_not_ours_is_named(url: str) -> None:
    with pytest.raises(ConfigurationError, match="DATABASE_URL: the driver 'a"):
        Database(url)


def test_a_folder_that_cannot_be_made_is_named() -> None:
    with pytest.raises(ConfigurationError, match=r"/proc/nope cannot be made.*ACROUTER_DATA_DIR"):
        Database("sqlite:////proc/nope/x.db")


@pytest.mark.parametrize("url", ["postgresql+psycopg://nobody:hidden@127.0.0.1:1/x", "sqlite:////proc/x.db"])
def test_a_database_that_cannot_be_opened_is_named_without_its_password(url: str) -> None:
    with pytest.raises(ConfigurationError, match=r"cannot be opened: .* correct DATABASE_URL\.") as told:
        Database(url).require_reachable()
    assert "hidden" not in str(told.value)


def test_a_key_file_that_is_no_text_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = tmp_path / "app.pem"
    key.write_bytes(b"\xff\xfe\x00")
    monkeypatch.setenv("ACROUTER_GITHUB_PRIVATE_KEY_FILE", str(key))
    with pytest.raises(ConfigurationError, match=r"app\.pem is not a text file"):
        load_settings().secret("github_private_key")
