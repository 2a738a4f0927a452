"""Log lines of one process: what strangers write stays within its line."""

import logging

import pytest
import structlog

from store.logs import configure_logging
from store.settings import Settings

HOSTILE = "a\n2026-01-01 [info] forged\x1b[31m\u2028b\u202ec"


def test_nothing_that_is_logged_begins_a_new_line_or_steers_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging(Settings(_env_file=None))
    structlog.get_logger("x").info("told", reason=HOSTILE)
    logging.getLogger("y").warning("told %s", HOSTILE)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert all(line.isprintable() for line in lines)


def test_no_line_of_an_error_passes_for_a_record_or_steers_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging(Settings(_env_file=None))
    try:
        raise ValueError(HOSTILE)
    except ValueError:
        structlog.get_logger("x").exception("told")
        logging.getLogger("y").exception("told")
    lines = capsys.readouterr().err.splitlines()
    assert all(line.isprintable() for line in lines)
    assert len([line for line in lines if not line.startswith("  ")]) == 2
    assert sum("Traceback" in line for line in lines) == 2, "and people read it still"


@pytest.mark.parametrize(
    "name", ["github_private_key", "github_webhook_secret", "github_client_secret", "dashboard_secret"]
)
def test_none_of_the_installations_own_secrets_reaches_the_log(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    secret = f"the-{name}-of-this-installation"
    configure_logging(Settings(_env_file=None, **{name: secret}))  # type: ignore[arg-type]
    structlog.get_logger("x").warning("told", words=f"it is {secret}!")
    said = capsys.readouterr().err
    assert "told" in said
    assert secret not in said
