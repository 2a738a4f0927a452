"""What a process needs before it starts."""

from pathlib import Path

import pytest
from pydantic import SecretStr

from bot.assembly import make_runtime, require_github
from store.database import Database
from store.errors import ConfigurationError
from store.settings import Settings
from tests.support.rows import QueueOfNames, settings


def test_a_text_that_is_no_key_is_refused_before_anything_starts() -> None:
    settings = Settings(
        _env_file=None,
        github_app_id=1,
        github_private_key=SecretStr("xx"),
        github_webhook_secret=SecretStr("s"),
    )
    with pytest.raises(ConfigurationError, match="ACROUTER_GITHUB_PRIVATE_KEY or _FILE is no private key"):
        require_github(settings)


def test_a_judge_that_is_not_in_the_pool_is_refused_before_anything_starts(tmp_path: Path) -> None:
    pool = tmp_path / "models.yaml"
    price = "input_usd_per_mtok: 1, output_usd_per_mtok: 2"
    pool.write_text(f"models: [{{name: clever, litellm_id: openai/clever, {price}}}]\n")
    wrong = settings(models_file=pool, judge_model="cleverer")
    with pytest.raises(ConfigurationError, match=r"ACROUTER_JUDGE_MODEL: .*'cleverer'.*Did you mean 'clever'\?"):
        make_runtime(wrong, Database(f"sqlite:///{tmp_path / 'x.sqlite3'}"), QueueOfNames(), None)
