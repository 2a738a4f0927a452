"""`.acrouter.yml`: what may stand there, and what a mistake is answered with."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.errors import ConfigurationError
from store.repo_config import RepositoryConfig, parse_repository_config, under


def test_an_empty_file_gives_the_defaults() -> None:
    for text in ("", "# nothing\n", "---\n"):
        assert parse_repository_config(text) == RepositoryConfig()


def test_a_full_file_is_read() -> None:
    config = parse_repository_config(
        """
        on_ci_failure: [ci, "nightly build"]
        setup: pip install -e .[dev]
        test: pytest -q
        models:
          allow: [cheap, strong]
          deny: [odd]
        budget_usd: 1.5
        max_attempts: 2
        draft: yes
        blocked_paths: ["deploy/**"]
        exploration: off
        """
    )
    assert config.wants_ci_fix("nightly build")
    assert not config.wants_ci_fix("release")
    assert config.setup == ["pip install -e .[dev]"]
    assert (config.models.allow, config.models.deny) == (["cheap", "strong"], ["odd"])
    assert (config.budget_usd, config.max_attempts, config.draft, config.exploration) == (1.5, 2, True, "off")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("on_ci_failur: true", "line 1: on_ci_failur: unknown key 'on_ci_failur'. Did you mean 'on_ci_failure'?"),
        ("test: pytest\nmodels:\n  alow: [x]\n", "line 3: models.alow: unknown key 'alow'. Did you mean 'allow'?"),
        ("budget_usd: -1", "line 1: budget_usd: Input should be greater than 0"),
        ("budget_usd: .inf", "budget_usd"),
        ("\nmax_attempts: 99", "line 2: max_attempts"),
        ("exploration: sometimes", "exploration"),
        ("test: [a]", "line 1: test"),
        ("- a\n- b", "keys and values"),
        ("just words", "keys and values"),
        ("test: 'open", "line 1: not valid YAML"),
        ("a: &x 1\nb: *x", "line 2: aliases (*name) are not supported"),
        ("test: a\ntest: b", "line 2: the key 'test' stands here twice"),
        ("1: x", "is not a text"),
        ("test: !!python/object/apply:os.system [id]", "not valid YAML"),
        ("x" * 100_000, "longer than"),
        ("[" * 30_000, "opening brackets"),
        ("- " * 30_000, "not valid YAML"),
        ("[" * 400, "not valid YAML"),
    ],
)
def test_a_mistake_is_named_with_its_place(text: str, words: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse_repository_config(text)
    assert words in str(caught.value)
    assert str(caught.value).startswith(".acrouter.yml: ")


def test_each_mistake_has_a_line_of_its_own() -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse_repository_config("draft: maybe\nbudget_usd: 0\nfoo: 1\n")
    assert len(str(caught.value).splitlines()) == 3


def test_a_repositorys_file_replaces_its_organisations_keys_but_not_what_only_the_organisation_says() -> None:
    above = parse_repository_config("organisation: {day_budget_usd: 5}\ndraft: on\nbudget_usd: 2\n")
    own = parse_repository_config("organisation: {day_budget_usd: 5000}\nbudget_usd: 1\n")
    config = under(above, own)
    assert config.organisation.day_budget_usd == 5
    assert (config.draft, config.budget_usd) == (True, 1)


@given(st.text(max_size=200))
def test_any_text_gives_a_configuration_or_a_clear_error(text: str) -> None:
    with suppress(ConfigurationError):
        assert isinstance(parse_repository_config(text), RepositoryConfig)
