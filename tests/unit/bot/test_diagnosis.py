"""`acrouter doctor` finds what `acrouter up` refuses, without a running service."""

from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import text
from typer.testing import CliRunner

from bot.cli.main import app
from bot.diagnosis import diagnose
from bot.github_app.findings import Finding
from store import migrations
from store.database import Database
from tests.support.github.server import new_private_key

PRICE = "input_usd_per_mtok: 1, output_usd_per_mtok: 2"
Doctor = Callable[..., list[Finding]]


@pytest.fixture
def doctor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Doctor:
    """Run it in an empty folder with one model, and with these settings; return what is not well."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models.yaml").write_text(f"models: [{{name: clever, litellm_id: openai/clever, {PRICE}}}]\n")

    def run(*, offline: bool = True, **settings: str) -> list[Finding]:
        for name, value in settings.items():
            monkeypatch.setenv(name, value)
        return [finding for finding in diagnose(offline=offline) if finding.level != "ok"]

    return run


def told(findings: list[Finding], what: str) -> Finding:
    [found] = [finding for finding in findings if finding.what == what]
    assert found.advice
    return found


@pytest.mark.parametrize(
    ("name", "value", "what", "words"),
    [
        ("ACROUTER_ENCODER", "banana", "encoder", "unknown encoder 'banana'"),
        ("ACROUTER_DIGEST_ISSUE", "foo", "digest", "'foo' is no place"),
        ("ACROUTER_LOGREG_FILE", "/nope", "voters", "/nope: cannot be read"),
        ("ACROUTER_VOTER_WEIGHTS", '{"bandot": 2}', "voters", "Did you mean 'bandit'?"),
        ("ACROUTER_DASHBOARD_ADMINS", "octo, ada lovelace", "dashboard", "'ada lovelace' is no organisation"),
        ("ACROUTER_GITHUB_CLIENT_ID", "Iv1.abc", "dashboard", "ACROUTER_GITHUB_CLIENT_SECRET or _FILE must be"),
        ("ACROUTER_GITHUB_API_URL", "foo", "GitHub", "ACROUTER_GITHUB_API_URL is no address"),
    ],
)
def test_a_setting_that_no_worker_starts_with_is_found(
    doctor: Doctor, name: str, value: str, what: str, words: str
) -> None:
    assert not [finding for finding in doctor() if finding.what == what]
    found = told(doctor(**{name: value}), what)
    assert found.level == "wrong"
    assert words in found.found


def test_a_broken_encoder_hides_no_broken_voter(doctor: Doctor) -> None:
    found = doctor(ACROUTER_ENCODER="banana", ACROUTER_VOTER_WEIGHTS='{"bandot": 2}')
    assert {"encoder", "voters"} <= {finding.what for finding in found}


def test_a_model_without_a_provider_and_one_whose_cache_costs_more_are_found(doctor: Doctor, tmp_path: Path) -> None:
    lines = (
        f"{{name: lost, litellm_id: nobody-knows-this, {PRICE}}}",
        f"{{name: odd, litellm_id: openai/odd, {PRICE}, cached_input_usd_per_mtok: 3}}",
    )
    (tmp_path / "models.yaml").write_text(f"models: [{', '.join(lines)}]\n")
    found = doctor()
    assert "no provider for litellm_id 'nobody-knows-this'" in told(found, "model lost").found
    odd = told(found, "model odd")
    assert odd.level == "warning"
    assert "cached_input_usd_per_mtok (3) is above" in odd.found


def test_a_model_that_is_to_come_later_is_found(doctor: Doctor, tmp_path: Path) -> None:
    (tmp_path / "models.yaml").write_text(
        f"models: [{{name: new, litellm_id: openai/new, {PRICE}, since: 2999-01-01}}]\n"
    )
    later = told(doctor(), "model new")
    assert later.level == "warning"
    assert "since (2999-01-01) is in the future" in later.found


def test_a_network_that_fails_is_no_matter_of_credentials(doctor: Doctor) -> None:
    found = told(
        doctor(
            offline=False,
            ACROUTER_GITHUB_APP_ID="1",
            ACROUTER_GITHUB_PRIVATE_KEY=new_private_key(),
            ACROUTER_GITHUB_WEBHOOK_SECRET="s",
            ACROUTER_GITHUB_API_URL="http://github.invalid",
        ),
        "GitHub App",
    )
    assert "github.invalid cannot be reached" in found.found
    assert "DNS" in found.advice
    assert "credentials" not in found.advice


@pytest.mark.bubblewrap
def test_a_data_folder_that_cannot_be_written_is_not_blamed_on_bubblewrap(doctor: Doctor) -> None:
    found = told(doctor(ACROUTER_DATA_DIR="/proc/nope", ACROUTER_SANDBOX="bubblewrap"), "sandbox")
    assert "/proc/nope/bubblewrap cannot be written" in found.found
    assert "apt-get install" not in found.found


def test_who_waits_for_the_first_image_is_told_for_what(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bot.diagnosis.diagnose", lambda **_: [])
    waiting = CliRunner().invoke(app, ["doctor"], env={"FORCE_COLOR": "1"})
    assert "the sandbox's first image takes minutes" in waiting.stderr
    assert CliRunner().invoke(app, ["doctor"]).stderr == "", "a file gets the findings alone"


def test_a_database_of_a_newer_acrouter_is_not_one_to_migrate(doctor: Doctor) -> None:
    database = Database("sqlite:///.acrouter/acrouter.sqlite3")
    migrations.upgrade(database)
    with database.session() as session:
        session.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    database.dispose()
    found = told(doctor(), "database")
    assert found.level == "wrong"
    assert "a newer acrouter has used it" in found.found


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"ACROUTER_DASHBOARD_ALLOWED": "octo"}, "nobody can sign in by ACROUTER_DASHBOARD_ALLOWED"),
        ({"ACROUTER_PUBLIC_URL": "https://example.com/acrouter"}, "has the path /acrouter"),
        (
            {
                "ACROUTER_GITHUB_CLIENT_ID": "Iv1.abc",
                "ACROUTER_GITHUB_CLIENT_SECRET": "s",
                "ACROUTER_DASHBOARD_ALLOWED": "octo",
            },
            "ACROUTER_PUBLIC_URL is not set",
        ),
    ],
)
def test_a_dashboard_that_people_cannot_reach_is_found(doctor: Doctor, settings: dict[str, str], words: str) -> None:
    found = told(doctor(**settings), "dashboard")
    assert found.level == "warning"
    assert words in found.found


def test_a_dashboard_that_is_set_up_is_well(doctor: Doctor) -> None:
    found = doctor(
        ACROUTER_GITHUB_CLIENT_ID="Iv1.abc",
        ACROUTER_GITHUB_CLIENT_SECRET="s",
        ACROUTER_DASHBOARD_ALLOWED="octo, @ada",
        ACROUTER_PUBLIC_URL="https://example.com/",
    )
    assert "dashboard" not in {finding.what for finding in found}
