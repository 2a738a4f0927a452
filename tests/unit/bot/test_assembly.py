"""What a process needs before it starts."""

from pathlib import Path
from typing import cast

import pytest
from pydantic import SecretStr
from structlog.testing import capture_logs

from bot.assembly import make_runtime, require_github
from bot.model_keys import missing_keys, require_a_key
from routing.pool import load_pool
from store.database import Database
from store.errors import ConfigurationError
from store.settings import Settings
from tests.support.forge import MemoryForge
from tests.support.rows import QueueOfNames, settings
from workers.ports import Forge


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


@pytest.fixture
def pool_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two models, each with a variable for its key; neither is set."""
    monkeypatch.chdir(tmp_path)
    price = "input_usd_per_mtok: 1, output_usd_per_mtok: 2"
    lines = []
    for name in ("clever", "quick"):
        monkeypatch.delenv(f"KEY_OF_{name.upper()}", raising=False)
        lines.append(f"{{name: {name}, litellm_id: openai/{name}, {price}, api_key_env: KEY_OF_{name.upper()}}}")
    path = tmp_path / "models.yaml"
    path.write_text(f"models: [{', '.join(lines)}]\n")
    return path


def test_a_worker_without_any_models_key_does_not_start(tmp_path: Path, pool_file: Path) -> None:
    database, forge = Database(f"sqlite:///{tmp_path / 'x'}"), cast("Forge", MemoryForge())
    with pytest.raises(ConfigurationError, match=r"(?s)No model of the pool.*KEY_OF_CLEVER.*KEY_OF_QUICK"):
        make_runtime(settings(models_file=pool_file), database, QueueOfNames(), forge)


def test_each_key_that_a_worker_lacks_is_one_warning(pool_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY_OF_QUICK", "k")
    with capture_logs() as logs:
        require_a_key(load_pool(pool_file))
    assert [(line["log_level"], line["model"]) for line in logs] == [("warning", "clever")]


def test_a_key_that_stands_in_the_settings_file_is_said_to_stand_there(tmp_path: Path, pool_file: Path) -> None:
    (tmp_path / ".env").write_text("KEY_OF_CLEVER=k\n")
    missing = missing_keys(load_pool(pool_file))
    assert missing["clever"].endswith("It stands in .env, which is for settings alone; export it.")
    assert missing["quick"].endswith("is not set.")
