"""Secrets leave the process in no text."""

import io
import json
import logging
import sys

import pytest
import structlog

from store.logs import configure_logging
from store.scrub import register_secret, scrub, scrub_high_entropy, scrub_json
from tests.support.rows import settings

JWT = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiI3NyJ9.c2lnbmF0dXJlLXdpdGgtbG90cw"
SECRETS = [
    "ghp_" + "a" * 36,
    "gho_" + "B" * 36,
    "ghu_" + "1" * 36,
    "ghr_" + "z" * 36,
    "ghs_" + "q" * 36,
    "ghs_" + "77_" + "eyJ" + "x" * 500,
    "github_pat_" + "A1" * 40,
    JWT,
    "sk-" + "a1" * 20,
    "sk-ant-api03-" + "x-Y_9" * 15,
    "AIza" + "S" * 35,
    "AKIA" + "Q" * 16,
]


@pytest.mark.parametrize("secret", SECRETS)
def test_a_token_is_known_by_its_look(secret: str) -> None:
    for text in (secret, f"token={secret}&x=1", f'{{"key": "{secret}"}}', f"a {secret}\nb"):
        assert secret not in scrub(text)
    assert scrub(f"before {secret} after") == "before [secret removed] after"


def test_a_private_key_goes_whole_or_cut() -> None:
    key = "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA\nabcdef\n-----END RSA PRIVATE KEY-----"
    assert scrub(f"x\n{key}\ny") == "x\n[secret removed]\ny"
    assert "MIIE" not in scrub(key[:50])


def test_credentials_in_a_url_go_and_the_url_stays() -> None:
    assert scrub("https://x-access-token:abc123@github.com/o/r.git") == "https://[secret removed]@github.com/o/r.git"


@pytest.mark.parametrize("scheme", ["Bearer", "token", "basic"])
def test_a_headers_credentials_go_whatever_they_look_like(scheme: str) -> None:
    assert scrub(f"> Authorization: {scheme} eDpsb29rcy1vcmRpbmFyeQ==") == f"> Authorization: {scheme} [secret removed]"


@pytest.mark.parametrize(
    "text",
    [
        "a commit 0123456789abcdef0123456789abcdef01234567",
        "sk-learn and scikit-learn",
        "the skeleton at https://github.com/o/r/pull/7",
        "task-list, ask-me, ghost_",
        "mailto:ada@example.com",
        "price: $12.50 at 10:30 @home",
    ],
)
def test_ordinary_words_stay(text: str) -> None:
    assert scrub(text) == text


def test_a_registered_secret_goes_wherever_it_stands() -> None:
    register_secret("the webhook's own secret")
    assert scrub("x the webhook's own secret y") == "x [secret removed] y"
    register_secret("short")
    assert scrub("a short text") == "a short text"


def test_of_a_secret_within_another_nothing_is_left() -> None:
    register_secret("a first half")
    register_secret("a first half and a second half")
    assert scrub("x a first half and a second half y") == "x [secret removed] y"


def test_each_line_of_a_secret_of_several_goes() -> None:
    register_secret("first-line-of-it\n  second-line-of-it\n")
    assert scrub("1: first-line-of-it\n2: second-line-of-it") == "1: [secret removed]\n2: [secret removed]"


def test_a_token_does_not_hide_behind_what_a_database_cannot_keep() -> None:
    token = SECRETS[0]
    assert scrub_json(token.replace("_", "_\x00")) == "[secret removed]"


def test_nested_data_is_scrubbed_and_fit_for_a_database() -> None:
    token = SECRETS[0]
    data = {"a": [token, {"b": (token.encode(), 1, None, 2.5, True)}], token: "nul \x00"}
    cleaned = scrub_json(data)
    assert token not in json.dumps(cleaned)
    assert cleaned["a"][1]["b"][1:] == [1, None, 2.5, True]
    assert "\x00" not in json.dumps(cleaned)


@pytest.mark.parametrize("as_json", [True, False])
def test_no_log_line_carries_a_secret(monkeypatch: pytest.MonkeyPatch, as_json: bool) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    token = SECRETS[4]

    class Holder:
        def __repr__(self) -> str:
            return f"Holder({token})"

    try:
        configure_logging(settings(log_json=as_json))
        log = structlog.get_logger("acrouter.test")
        log.info(f"event {token}", value=token, deep={"x": [token]}, odd=Holder())
        logging.getLogger("library").warning("standard %s", token)
        try:
            raise ValueError(f"with {token}")
        except ValueError:
            log.exception("crashed")
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
        structlog.reset_defaults()
    written = stream.getvalue()
    assert written.count("[secret removed]") >= 6
    assert token not in written
    assert "crashed" in written
    if as_json:
        assert all(json.loads(line) for line in written.splitlines())


def test_random_looking_words_go_where_that_is_asked_for_and_readable_ones_stay() -> None:
    key = "q7Zr0pL9xW2vB8nK4mT6yH1cD3fG5jS0aE7uI9oP2kQ4"
    kept = (
        f"commit {'0123456789abcdef' * 2}01234567 in "
        "https://example.com/a/fairly/long/path/with-words/and-more-words/index "
        "test_that_a_long_name_of_a_test_is_no_secret_at_all"
    )
    assert key in scrub(key)
    scrub_high_entropy(True)
    try:
        assert key not in scrub(f"the key is {key}.")
        assert scrub(kept) == kept
    finally:
        scrub_high_entropy(False)
