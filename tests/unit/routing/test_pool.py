"""models.yaml: what is refused, and in which words."""

import json
import traceback
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from pydantic import ValidationError

from routing.errors import PoolError
from routing.pool import ModelPool, ModelSpec, load_pool, resolve_key

ENTRY = """
  - name: small
    litellm_id: openai/small
    input_usd_per_mtok: 0.1
    output_usd_per_mtok: 0.4
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "models.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def refused(folder: Path, text: str) -> str:
    with pytest.raises(PoolError) as caught:
        load_pool(written(folder, text))
    return str(caught.value)


def test_the_example_that_ships_is_a_valid_pool() -> None:
    pool = load_pool(Path(__file__).parents[3] / "models.example.yaml")

    assert pool.names == ("small", "large")  # `local` is there, but not enabled
    assert pool.expected_cost_usd("large") > pool.expected_cost_usd("small") > 0


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("    contxt_tokens: 5", ["models.0 (small)", "unknown key 'contxt_tokens'", "Did you mean 'context_tokens'?"]),
        ("    api_key: sk-1234", ["models.0 (small)", "api_key_env", "api_key_file"]),
        (
            "    extra: {headers: {Authorization: Bearer x}}",
            ["models.0 (small).extra", "'Authorization'", "api_key_env"],
        ),
        ("    extra: {aws_session_token: x}", ["'aws_session_token'"]),
        ("    cached_input_usd_per_mtok: -1", ["cached_input_usd_per_mtok", "greater than or equal to 0"]),
        ("    api_key_env: A\n    api_key_file: b", ["both 'api_key_env' and 'api_key_file'"]),
        ("    api_base: localhost:8000/v1", ["models.0 (small).api_base", "is no address"]),
        ("    api_base: ''", ["models.0 (small).api_base", "is no address"]),
        ("    context_tokens: 100", ["'max_output_tokens' is larger than 'context_tokens'"]),
        ("    free: true", ["contradict"]),
        ("    agent: {comand: codex}", ["models.0 (small).agent", "Did you mean 'command'?"]),
    ],
)
def test_a_mistake_is_named_with_its_entry_and_key(tmp_path: Path, line: str, words: list[str]) -> None:
    message = refused(tmp_path, "models:" + ENTRY + line + "\n")

    assert all(word in message for word in words), message
    assert "sk-1234" not in message


def test_a_program_gets_no_model_whose_key_would_have_to_go_to_somebody_else(tmp_path: Path) -> None:
    entry = ENTRY.replace("openai/small", "openrouter/small") + "    agent: {command: codex}\n"

    assert "Add that, or begin 'litellm_id' with openai/ or anthropic/" in refused(tmp_path, "models:" + entry)
    pool = load_pool(written(tmp_path, "models:" + entry + "    api_base: https://openrouter.ai/api/v1\n"))
    assert pool.get("small").agent is not None


@pytest.mark.parametrize("price", ["-0.1", ".nan", ".inf"])
def test_a_price_that_is_none_is_refused(tmp_path: Path, price: str) -> None:
    assert "input_usd_per_mtok" in refused(tmp_path, "models:" + ENTRY.replace("0.1", price))


@pytest.mark.parametrize("price", ["0.00000025", "2.5e-6", "600e-6", "250000"])
def test_a_price_of_another_unit_is_refused(tmp_path: Path, price: str) -> None:
    assert "is no price per million tokens" in refused(tmp_path, "models:" + ENTRY.replace("0.1", price))
    assert "is no price per million tokens" in refused(tmp_path, "models:" + ENTRY.replace("0.4", price))


def test_a_missing_price_is_refused(tmp_path: Path) -> None:
    message = refused(tmp_path, "models:" + ENTRY.replace("    output_usd_per_mtok: 0.4\n", ""))

    assert "models.0 (small).output_usd_per_mtok: Field required" in message


def test_a_model_that_costs_nothing_must_say_so(tmp_path: Path) -> None:
    unpriced = "models:" + ENTRY.replace("0.1", "0").replace("0.4", "0")

    assert "'free: true'" in refused(tmp_path, unpriced)
    assert load_pool(written(tmp_path, unpriced + "    free: true\n")).expected_cost_usd("small") == 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "must be a mapping"),
        ("- small", "must be a mapping"),
        ("models: []", "at least 1"),
        ("model:" + ENTRY, "Did you mean 'models'?"),
        ("models: [", "is not YAML"),
        ("models:" + ENTRY + ENTRY, "models.1 (small): the name is there twice"),
        ("models:" + ENTRY + "    enabled: false\n", "Enable at least one"),
        ("models:" + ENTRY + "    input_usd_per_mtok: 9\n", "line 6: the key 'input_usd_per_mtok' stands here twice"),
        ("models:" + ENTRY + "models:" + ENTRY, "line 6: the key 'models' stands here twice"),
        ("models:" + ENTRY + "    since: 2026-13-01\n", "is not YAML: month must be in 1..12"),
        ("[" * 3_000, "is not YAML"),
    ],
)
def test_a_file_without_a_pool_is_refused(tmp_path: Path, text: str, words: str) -> None:
    message = refused(tmp_path, text)

    assert words in message
    assert str(tmp_path / "models.yaml") in message


def test_broken_yaml_is_located_without_being_shown(tmp_path: Path) -> None:
    message = refused(tmp_path, "models:\n  - name: a\n    api_key: 'sk-canary\n")

    assert "is not YAML (line 4, column 1)" in message
    assert "canary" not in message


@pytest.mark.parametrize(
    "place", [{"api_key": "sk-canary"}, {"extra": {"api_key": "sk-canary"}}, {"apikey": "sk-canary"}]
)
def test_a_key_in_the_wrong_place_stays_out_of_tracebacks(tmp_path: Path, place: dict[str, object]) -> None:
    entry = {"name": "a", "litellm_id": "openai/a", "input_usd_per_mtok": 1, "output_usd_per_mtok": 1, **place}
    with pytest.raises(ValidationError) as given:
        ModelSpec.model_validate(entry)
    with pytest.raises(PoolError) as read:
        load_pool(written(tmp_path, json.dumps({"models": [entry]})))

    for caught in (given, read):
        shown = "".join(traceback.format_exception(caught.value))
        assert "sk-canary" not in shown
        assert next(iter(place)) in shown


def test_a_missing_file_says_what_to_copy(tmp_path: Path) -> None:
    with pytest.raises(PoolError, match=r"Copy models\.example\.yaml"):
        load_pool(tmp_path / "none.yaml")


def spec(name: str, **more: object) -> ModelSpec:
    return ModelSpec.model_validate(
        {"name": name, "litellm_id": "x", "input_usd_per_mtok": 1, "output_usd_per_mtok": 2, **more}
    )


def test_the_eleventh_entry_is_not_mistaken_for_the_first(tmp_path: Path) -> None:
    entries = "".join(ENTRY.replace("name: small", f"name: model-{n}") for n in range(11))
    message = refused(tmp_path, "models:" + entries + "    wrong: 1\n")

    assert "models.10 (model-10)" in message


def test_allow_and_deny_narrow_the_pool() -> None:
    pool = ModelPool((spec("a"), spec("b"), spec("c")))

    assert pool.only(allow=["a", "b"], deny=["b"]).names == ("a",)
    kept = replace(pool, without_benchmarks=("a benchmark",)).only(allow=["a"])
    assert kept.without_benchmarks == ("a benchmark",)
    with pytest.raises(PoolError, match="unknown model 'aa'"):
        pool.only(allow=["aa"])
    with pytest.raises(PoolError, match="leave no model"):
        pool.only(allow=["a"], deny=["a"])


def test_what_is_expected_of_a_model_at_first_is_published_or_its_price_tells() -> None:
    prices = {"input_usd_per_mtok": 1.0, "output_usd_per_mtok": 2.0}
    pool = ModelPool(
        (
            ModelSpec(name="strong", litellm_id="anthropic/claude-opus-4-6", **prices),
            ModelSpec(name="glm-5", litellm_id="hosted_vllm/ours", **prices),
            ModelSpec(name="unknown", litellm_id="openai/nobody-knows-it", **prices),
        )
    )
    assert pool.published == {"strong", "glm-5"}
    assert pool.prior_score("strong") > pool.prior_score("glm-5")
    with pytest.raises(PoolError, match=r"unknown model 'strnog'\. Did you mean 'strong'"):
        pool.prior_score("strnog")


def test_a_key_is_read_when_it_is_needed(tmp_path: Path) -> None:
    file = tmp_path / "key"
    by_file = spec("a", api_key_file=str(file))
    by_name = spec("b", api_key_env="B_KEY")

    with pytest.raises(PoolError, match="model 'a': cannot read its key from"):
        resolve_key(by_file)
    file.write_text("  secret\n", encoding="utf-8")

    assert resolve_key(by_file) == "secret"
    assert resolve_key(by_name, {"B_KEY": "other"}) == "other"
    assert resolve_key(spec("c")) is None
    with pytest.raises(PoolError, match="the environment variable B_KEY is not set"):
        resolve_key(by_name, {"B_KEY": " "})


@pytest.mark.parametrize("since", ["2026-11-24", "'2026-11-24'"])
def test_a_name_stands_for_its_model_from_the_day_that_the_entry_says(tmp_path: Path, since: str) -> None:
    pool = load_pool(written(tmp_path, f"models:{ENTRY}    since: {since}\n"))
    east = timezone(timedelta(hours=3))
    moments = {
        datetime(2026, 11, 23, 23, 59, tzinfo=UTC): "small before 2026-11-24",
        datetime(2026, 11, 24, tzinfo=UTC): "small",
        datetime(2026, 11, 24, 2, tzinfo=east): "small before 2026-11-24",  # by the clock of UTC
    }
    assert {moment: pool.stood_for("small", moment) for moment in moments} == moments
    assert pool.stood_for("one that has left", datetime(2020, 1, 1, tzinfo=UTC)) == "one that has left"


@pytest.mark.parametrize("since", ["last week", "2026-11-24 10:00:00", "20261124", "2026-11-24T00:00:00Z"])
def test_a_day_that_is_none_is_refused(tmp_path: Path, since: str) -> None:
    told = refused(tmp_path, f"models:{ENTRY}    since: {since}\n")
    assert "models.0 (small).since: give a day, as in 'since: 2026-11-24'." in told
