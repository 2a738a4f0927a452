"""The published JSON Schema of `.acrouter.yml` and its reader take the same files."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from store.errors import ConfigurationError
from store.repo_config import parse_repository_config
from store.repo_schema import repository_config_schema
from templates import render

ROOT = Path(__file__).resolve().parents[3]
PUBLISHED = json.loads((ROOT / "docs" / "acrouter.schema.json").read_text(encoding="utf-8"))


def test_the_published_schema_is_the_code_s() -> None:
    assert repository_config_schema() == PUBLISHED, "run scripts/config_schema.py"


def test_every_key_with_a_meaning_of_its_own_is_described() -> None:
    plain = {"month_budget_usd", "max_attempts", "who", "triggers", "models", "organisation"}
    undescribed = {name for name, key in PUBLISHED["properties"].items() if "description" not in key}
    assert undescribed <= plain


FILES: dict[str, Any] = {
    "nothing": "{}",
    "everything": """
        triggers: {label: robot, commands: false}
        who: {permission: maintain, teams: [core], bots: ["renovate[bot]"]}
        on_ci_failure: [ci]
        rerun_flakes: false
        setup: pip install .
        test: pytest
        lint: ruff check .
        submodules: true
        image: ghcr.io/acme/ci:3
        services:
          database: {image: "postgres:16", env: {POSTGRES_PASSWORD: test}, ready: pg_isready, writable: [/var/cache]}
        models: {allow: [a], deny: [b]}
        budget_usd: 1
        day_budget_usd: 2.5
        month_budget_usd: 30
        person_day_budget_usd: 1
        max_attempts: 2
        escalation: off
        draft: true
        reviewers: [ada, "team:core"]
        blocked_paths: ["x/**"]
        allowed_paths: ["src/**"]
        exploration: on
        organisation: {day_budget_usd: 5, onboarding: off}
    """,
    "an onboarding file": render("onboarding/acrouter.yml.j2", label="acrouter", budget_usd=2.0),
    "a list of commands": "setup: [a, b]",
    "an unknown key": "budget: 1",
    "a list of linters": "lint: [ruff check ., mypy]",
    "a linter that is nothing": "lint: ['']",
    "an image that is an option": "image: --privileged",
    "a service without an image": "services: {db: {env: {A: b}}}",
    "a service with a name that is none": "services: {'a b': {image: x}}",
    "an unknown key inside": "who: {team: [core]}",
    "a negative amount": "budget_usd: -1",
    "a wrong word": "who: {permission: read}",
    "a number for a text": "test: 7",
    "a text for a switch": "exploration: maybe",
    "too many attempts": "max_attempts: 21",
    "an odd team": "who: {teams: ['a/b']}",
}


@pytest.mark.parametrize("text", FILES.values(), ids=FILES)
def test_schema_and_reader_agree(text: str) -> None:
    validator = jsonschema.Draft202012Validator(PUBLISHED)
    allowed = validator.is_valid(yaml.safe_load(text))
    try:
        parse_repository_config(text)
    except ConfigurationError:
        read = False
    else:
        read = True
    assert allowed == read
