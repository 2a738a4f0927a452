"""Turns a part of an OpenAPI 3.0 document into plain JSON Schema, closed over its references."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

Json = Any


def close_over(paths: Json, whole: Json) -> Json:
    """Return a document of `paths` and all components that they reach, without examples."""
    components: dict[str, dict[str, Json]] = {}
    todo = list(_references(paths))
    while todo:
        reference = todo.pop()
        _, kind, name = reference.removeprefix("#/").split("/")
        if kind == "examples" or name in components.setdefault(kind, {}):
            continue
        components[kind][name] = whole["components"][kind][name]
        todo += _references(components[kind][name])
    return {"paths": paths, "components": components}


def to_json_schema(value: Json) -> Json:
    """Return the same document with `nullable` said in JSON Schema's words, and without prose and examples.

    OpenAPI 3.0 says `nullable: true` beside a type; JSON Schema knows only the type `null`
    (https://spec.openapis.org/oas/v3.0.3#schema-object).
    """
    if isinstance(value, list):
        return [to_json_schema(item) for item in value]
    if not isinstance(value, dict):
        return value
    schema = {
        # `properties` may hold a property that is called "example" or "nullable": those are schemas, not keywords.
        key: {name: to_json_schema(item) for name, item in part.items()}
        if key == "properties"
        else to_json_schema(part)
        for key, part in value.items()
        if key not in ("example", "examples", "externalDocs", "x-github", "x-octokit", "x-multi-segment")
        and not (key in ("description", "summary") and isinstance(part, str))
    }
    if schema.get("nullable") is True:
        del schema["nullable"]
        return {"anyOf": [schema, {"type": "null"}]}
    return schema


def alternatives(schema: Json, resolve: Callable[[Json], Json]) -> Iterator[Mapping[str, Json]]:
    """Yield the schema and everything that it combines."""
    schema = resolve(schema)
    yield schema
    for key in ("allOf", "anyOf", "oneOf"):
        for part in schema.get(key, []):
            yield from alternatives(part, resolve)


def _references(value: Json) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _references(item)
    elif isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for key, item in value.items():
            if key not in ("example", "examples"):
                yield from _references(item)
