"""Which images a repository may name."""

import pytest

from store.image_rules import check_images, why_not
from store.repo_config import RepositoryConfig, parse_repository_config
from store.repo_yaml import RepositoryConfigurationError

ALLOWED = "postgres:* redis:7 ghcr.io/acme/*"
TEXT = """\
test: pytest
image: ghcr.io/acme/ci:3
services:
  database:
    image: postgres:16
    env: {POSTGRES_PASSWORD: test}
    ready: pg_isready
  cache:
    image: redis:7
    command: redis-server --save ""
"""


@pytest.mark.parametrize("image", ["postgres:16", "postgres", "redis:7", "ghcr.io/acme/a/b@sha256:" + "0" * 64])
def test_an_image_that_a_pattern_names_may_be_used(image: str) -> None:
    assert why_not(image, ALLOWED) is None


@pytest.mark.parametrize(
    "image",
    [
        "redis:6",
        "redis",
        "mallory/postgres:16",
        "ghcr.io/acme-evil/x",
        "POSTGRES:16",
        "postgres:5000/mallory/x",  # a registry of that name, with a port
        "postgres:5000/mallory/x:16",
    ],
)
def test_any_other_is_refused_with_what_is_allowed(image: str) -> None:
    words = why_not(image, ALLOWED)
    assert words is not None
    assert f"'{image}'" in words
    assert "postgres:*, redis:7, ghcr.io/acme/* (ACROUTER_SANDBOX_IMAGES)" in words


@pytest.mark.parametrize(
    ("pattern", "image", "allowed"),
    [
        ("postgres:16*", "postgres:16-alpine", True),
        ("postgres:*", "postgres@sha256:" + "0" * 64, False),
        ("localhost:5000/*", "localhost:5000/a/b:1", True),
        ("localhost:5000/ci:*", "localhost:5000/ci:1", True),
        ("localhost:5000/ci:*", "localhost:5000/evil:1", False),
        ("*", "anything/at:all", True),
    ],
)
def test_name_and_tag_are_held_against_the_pattern_apart(pattern: str, image: str, allowed: bool) -> None:
    assert (why_not(image, pattern) is None) is allowed


def test_without_a_setting_none_is_allowed() -> None:
    assert why_not("postgres:16", "") == (
        "the operator of acrouter does not allow the image 'postgres:16'. None is allowed (ACROUTER_SANDBOX_IMAGES)."
    )


def test_a_configuration_is_checked_with_its_lines() -> None:
    config = parse_repository_config(TEXT)
    assert config.services["database"].env == {"POSTGRES_PASSWORD": "test"}
    check_images(config, TEXT, ALLOWED)
    check_images(RepositoryConfig(), "", "")
    with pytest.raises(RepositoryConfigurationError) as refused:
        check_images(config, TEXT, "postgres:*")
    assert [mistake.line for mistake in refused.value.mistakes] == [2, 9]
    assert str(refused.value).splitlines()[1].startswith(".acrouter.yml: line 9: services.cache.image: the operator")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("image: '--privileged'", "line 1: image"),
        ("image: a b", "line 1: image"),
        ("image: a/../b", "line 1: image"),
        ("services:\n  db:\n    imag: postgres", "line 3: services.db.imag: unknown key 'imag'. Did you mean 'image'?"),
        ("services:\n  db: {env: {A: b}}", "services.db.image: Field required"),
        ("services:\n  Data_Base: {image: postgres}", "services.Data_Base"),
        ("services:\n  db: {image: postgres, env: {'A=B': c}}", "services.db.env.A=B"),
        ("services:\n  db: {image: postgres, writable: [../etc]}", "services.db.writable"),
        ("services:\n" + "".join(f"  s{n}: {{image: x}}\n" for n in range(6)), "services: "),
    ],
)
def test_a_mistake_is_named_with_its_place(text: str, words: str) -> None:
    with pytest.raises(RepositoryConfigurationError) as refused:
        parse_repository_config(text)
    assert words in str(refused.value)
