"""Holds webhook bodies against the published schema of all webhooks (npm `@octokit/webhooks-schemas`, JSON Schema)."""

import json
from functools import cache
from typing import Any

from jsonschema import Draft7Validator

from tests.support import npm

Json = Any


def webhook_problems(event: str, payload: Json) -> list[str]:
    """Return how a webhook's body differs from what is published for its event and action."""
    definitions = _schema()["definitions"]
    action = payload.get("action")
    name = f"{event}${action}" if f"{event}${action}" in definitions else f"{event}$event"
    if name not in definitions:
        name = f"{event}_event"
    if name not in definitions:
        return [f"there is no webhook {event} {action or ''}"]
    document = {"definitions": definitions, "allOf": [{"$ref": f"#/definitions/{name}"}]}
    return [
        f"{name} {'/'.join(map(str, error.absolute_path)) or 'body'}: {error.message[:300]}"
        for error in Draft7Validator(document).iter_errors(payload)
    ]


@cache
def _schema() -> Json:
    """Return the schema, open for fields that GitHub added since it was published."""
    return _open(json.loads(npm.webhook_schemas().read_text(encoding="utf-8")))


def _open(value: Json) -> Json:
    if isinstance(value, list):
        return [_open(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {key: _open(item) for key, item in value.items() if not (key == "additionalProperties" and item is False)}
