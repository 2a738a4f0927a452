"""The pool of `acrouter demo --model NAME`."""

from pathlib import Path

import pytest
import yaml

from bot.demo.paid import write_paid_models_file
from store.errors import ConfigurationError


@pytest.fixture(autouse=True)
def _own_price_map(monkeypatch: pytest.MonkeyPatch) -> None:
    """LiteLLM's packaged prices, not a download."""
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")


def test_a_paid_model_gets_its_published_prices(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary-not-a-key")
    path = tmp_path / "models.yaml"
    write_paid_models_file(path, "openai/gpt-4o-mini")
    (entry,) = yaml.safe_load(path.read_text())["models"]
    assert entry["litellm_id"] == "openai/gpt-4o-mini"
    assert (entry["input_usd_per_mtok"], entry["output_usd_per_mtok"]) == pytest.approx((0.15, 0.60))
    assert "scripted" not in entry
    assert "canary" not in path.read_text()


def test_a_missing_key_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ConfigurationError, match="OPENAI_API_KEY"):
        write_paid_models_file(tmp_path / "models.yaml", "openai/gpt-4o-mini")


def test_an_unknown_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="does not know 'openai/no-such-model'"):
        write_paid_models_file(tmp_path / "models.yaml", "openai/no-such-model")
