"""The published JSON Schema of `.acrouter.yml`, for editors and for people who check it before they push."""

import ast
import inspect
import textwrap
from typing import Any

from pydantic import BaseModel

from store.repo_config import ModelRules, OrganisationRules, RepositoryConfig, ServiceRules, Triggers, Who

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def repository_config_schema() -> dict[str, Any]:
    """Return the schema (JSON Schema 2020-12), each key with its description.

    It takes what the file's reader takes, but for two comforts: one command where a list is meant is taken by both,
    and the bare words `on` and `off`, which YAML 1.1 reads as booleans, are taken as such.
    """
    schema = RepositoryConfig.model_json_schema()
    _describe(RepositoryConfig, schema["properties"])
    for model in _PARTS:
        _describe(model, schema["$defs"][model.__name__]["properties"])
    for table in (schema["properties"]["services"], schema["$defs"]["ServiceRules"]["properties"]["env"]):
        table["additionalProperties"] = False  # a name that the pattern does not fit is an error
    for properties in (schema["properties"], schema["$defs"]["OrganisationRules"]["properties"]):
        for name in _SWITCHES & properties.keys():
            properties[name] = _with_booleans(properties[name])
    for name in _LISTS:
        schema["properties"][name] = _with_one(schema["properties"][name])
    return {"$schema": DIALECT, "title": ".acrouter.yml", **{k: v for k, v in schema.items() if k != "title"}}


_PARTS: tuple[type[BaseModel], ...] = (ModelRules, OrganisationRules, ServiceRules, Triggers, Who)
_LISTS = ("setup", "lint")
_SWITCHES = frozenset({"escalation", "exploration", "onboarding"})


def _describe(model: type[BaseModel], properties: dict[str, Any]) -> None:
    for name, words in _docstrings(model).items():
        properties[name]["description"] = words


def _with_booleans(schema: dict[str, Any]) -> dict[str, Any]:
    kept: dict[str, Any] = {key: schema[key] for key in ("description", "default", "title") if key in schema}
    rest = {key: value for key, value in schema.items() if key not in kept}
    return {**kept, "anyOf": [*(rest.get("anyOf") or [rest]), {"type": "boolean"}]}


def _with_one(schema: dict[str, Any]) -> dict[str, Any]:
    kept: dict[str, Any] = {key: schema[key] for key in ("description", "default", "title") if key in schema}
    many = {key: value for key, value in schema.items() if key not in kept}
    return {**kept, "anyOf": [many, schema["items"]]}


def _docstrings(model: type[BaseModel]) -> dict[str, str]:
    """The string that follows a field's line, as one line."""
    body = ast.parse(textwrap.dedent(inspect.getsource(model))).body[0]
    assert isinstance(body, ast.ClassDef)
    return {
        line.target.id: " ".join(str(following.value.value).split())
        for line, following in zip(body.body, body.body[1:], strict=False)
        if isinstance(line, ast.AnnAssign)
        and isinstance(line.target, ast.Name)
        and isinstance(following, ast.Expr)
        and isinstance(following.value, ast.Constant)
    }
