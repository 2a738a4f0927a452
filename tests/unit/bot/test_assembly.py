"""What a process needs before it starts."""

import pytest
from pydantic import SecretStr

from bot.assembly import require_github
from store.errors import ConfigurationError
from store.settings import Settings


def test_a_text_that_is_no_key_is_refused_before_anything_starts() -> None:
    settings = Settings(
        _env_file=None,
        github_app_id=1,
        github_private_key=SecretStr("xx"),
        github_webhook_secret=SecretStr("s"),
    )
    with pytest.raises(ConfigurationError, match="ACROUTER_GITHUB_PRIVATE_KEY or _FILE is no private key"):
        require_github(settings)
