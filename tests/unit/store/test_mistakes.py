"""Mistakes in the environment: each is one sentence that names the setting."""

from pathlib import Path

import pytest

from store.database import Database
from store.errors import ConfigurationError
from store.image_rules import why_not
from store.settings import load_settings


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("REDIS_URL", "nonsense", "must be redis://"),
        ("REDIS_URL", "rdis://127.0.0.1", "must be redis://"),
        ("ACROUTER_PORT", "99999999", "environment: ACROUTER_PORT=99999999: "),
        ("ACROUTER_TASK_BUDGET_USD", "inf", "ACROUTER_TASK_BUDGET_USD=inf: "),
        (
            "ACROUTER_VOTER_WEIGHTS",
            "{bandit: 2}",
            r'environment: ACROUTER_VOTER_WEIGHTS is no JSON; .*=\{"bandit": 2\}$',
        ),
        ("ACROUTER_VOTER_WEIGHTS", '{"bandit": "two"}', r"ACROUTER_VOTER_WEIGHTS \(bandit\)=two: "),
        ("ACROUTER_DAY_BUDGET_USD", "nan", "ACROUTER_DAY_BUDGET_USD=nan: "),
        ("ACROUTER_ATTEMPT_TIMEOUT_S", "inf", "ACROUTER_ATTEMPT_TIMEOUT_S=inf: "),
        ("ACROUTER_LEASE_S", "inf", "ACROUTER_LEASE_S=inf: "),
        ("ACROUTER_LEASE_S", "1e12", "ACROUTER_LEASE_S=1e12: .* less than or equal to 31536000"),
        ("ACROUTER_TEST_TIMEOUT_S", "1e10", "ACROUTER_TEST_TIMEOUT_S=1e10: .* less than or equal to 31536000"),
        ("ACROUTER_DELIVERY_DAYS", "1e6", "ACROUTER_DELIVERY_DAYS=1e6: .* less than or equal to 36500"),
        ("ACROUTER_DASHBOARD_SESSION_HOURS", "1e9", "ACROUTER_DASHBOARD_SESSION_HOURS=1e9: .* less than or equal to"),
        ("ACROUTER_REWARD_USD_WEIGHT", "inf", "ACROUTER_REWARD_USD_WEIGHT=inf: "),
        ("ACROUTER_GITHUB_WRITE_PAUSE_S", "-1", "ACROUTER_GITHUB_WRITE_PAUSE_S=-1: "),
        ("ACROUTER_PUBLIC_URL", "acrouter.example.com", "ACROUTER_PUBLIC_URL: is no address"),
        ("ACROUTER_PUBLIC_URL", "https://", "ACROUTER_PUBLIC_URL: is no address"),
        ("ACROUTER_TRACE_ENDPOINT", "localhost:4318", "ACROUTER_TRACE_ENDPOINT: is no address"),
        ("ACROUTER_POLICY_URL", "127.0.0.1:8000/v1", "ACROUTER_POLICY_URL: is no address"),
        ("ACROUTER_TRIGGER_LABEL", "", "ACROUTER_TRIGGER_LABEL: is no label's name"),
        ("ACROUTER_TRIGGER_LABEL", "x" * 51, "ACROUTER_TRIGGER_LABEL: is no label's name"),
        ("ACROUTER_MAX_BODY_BYTES", "0", "ACROUTER_MAX_BODY_BYTES=0: "),
    ],
)
def test_a_wrong_setting_is_named(monkeypatch: pytest.MonkeyPatch, name: str, value: str, told: str) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigurationError, match=told):
        load_settings()


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("ACROUTER_PORT=abc", r"^\.env: ACROUTER_PORT=abc: Input should be a valid integer"),
        ("ACROUTER_VOTER_WEIGHTS={bandit: 2}", r"^\.env: ACROUTER_VOTER_WEIGHTS is no JSON"),
        ("ACROUTER_PROT=1", r"^\.env: unknown setting 'ACROUTER_PROT'\. Did you mean 'ACROUTER_PORT'\?$"),
        ("ACROUTER_HOST=0.0.0.0\n\nthis is no setting", r"^\.env: line 3 is no setting\."),
    ],
)
def test_a_wrong_line_of_the_file_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, told: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(".env").write_text(f"{line}\n")
    with pytest.raises(ConfigurationError, match=told):
        load_settings()


def test_the_environment_goes_before_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path(".env").write_text("ACROUTER_PORT=1\n")
    monkeypatch.setenv("ACROUTER_PORT", "abc")
    with pytest.raises(ConfigurationError, match=r"^environment: ACROUTER_PORT=abc: "):
        load_settings()


def test_a_wrong_value_that_may_be_secret_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDIS_URL", "rdis://:hidden@127.0.0.1")
    monkeypatch.setenv("ACROUTER_GITHUB_APP_ID", "ghp_" + "A1b2" * 9)
    with pytest.raises(ConfigurationError, match=r"environment: REDIS_URL: must be redis://") as told:
        load_settings()
    assert "hidden" not in str(told.value)
    assert "A1b2" not in str(told.value)


def test_a_file_that_is_no_text_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path(".env").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigurationError, match=r"\.env: is not a text file"):
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


def test_commas_part_images_and_packages_as_spaces_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACROUTER_SANDBOX_IMAGES", "postgres:*, redis:7,,")
    monkeypatch.setenv("ACROUTER_SANDBOX_PACKAGES", "nodejs, npm")
    settings = load_settings()
    assert why_not("postgres:16", settings.sandbox_images) is None
    assert why_not("redis:7", settings.sandbox_images) is None
    assert why_not("mysql:8", settings.sandbox_images)
    assert settings.sandbox_packages.split() == ["nodejs", "npm"]
