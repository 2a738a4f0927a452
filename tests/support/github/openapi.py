"""Holds requests and answers against GitHub's own description of its REST API.

The description (npm `@octokit/openapi`, OpenAPI 3.0) is cut to the operations that acrouter uses and cached.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

from jsonschema import Draft7Validator, FormatChecker

from tests.support import npm
from tests.support.github.schema import alternatives, close_over, to_json_schema

Json = Any

_FORMATS = FormatChecker(())


@_FORMATS.checks("date-time")
def _is_date_time(value: object) -> bool:
    if not isinstance(value, str):
        return True
    try:
        return datetime.fromisoformat(value).tzinfo is not None
    except ValueError:
        return False


_REPO = "/repos/{owner}/{repo}"
OPERATIONS: Mapping[str, Sequence[str]] = {
    "/app": ["get"],
    "/app/hook/deliveries": ["get"],
    "/app/hook/deliveries/{delivery_id}": ["get"],
    "/app/hook/deliveries/{delivery_id}/attempts": ["post"],
    "/app/installations": ["get"],
    "/app/installations/{installation_id}": ["get"],
    "/app/installations/{installation_id}/access_tokens": ["post"],
    "/installation/repositories": ["get"],
    "/orgs/{org}/teams/{team_slug}/memberships/{username}": ["get"],
    "/rate_limit": ["get"],
    "/users/{username}": ["get"],
    _REPO: ["get"],
    f"{_REPO}/installation": ["get"],
    f"{_REPO}/collaborators/{{username}}/permission": ["get"],
    f"{_REPO}/contents/{{path}}": ["get", "put"],
    f"{_REPO}/branches": ["get"],
    f"{_REPO}/branches/{{branch}}": ["get"],
    f"{_REPO}/git/ref/{{ref}}": ["get"],
    f"{_REPO}/git/matching-refs/{{ref}}": ["get"],
    f"{_REPO}/git/refs": ["post"],
    f"{_REPO}/git/refs/{{ref}}": ["patch", "delete"],
    f"{_REPO}/git/commits/{{commit_sha}}": ["get"],
    f"{_REPO}/commits": ["get"],
    f"{_REPO}/commits/{{ref}}": ["get"],
    f"{_REPO}/commits/{{ref}}/check-runs": ["get"],
    f"{_REPO}/commits/{{ref}}/check-suites": ["get"],
    f"{_REPO}/commits/{{ref}}/status": ["get"],
    f"{_REPO}/commits/{{commit_sha}}/pulls": ["get"],
    f"{_REPO}/compare/{{basehead}}": ["get"],
    f"{_REPO}/labels": ["get", "post"],
    f"{_REPO}/labels/{{name}}": ["get"],
    f"{_REPO}/issues": ["get", "post"],
    f"{_REPO}/issues/{{issue_number}}": ["get", "patch"],
    f"{_REPO}/issues/{{issue_number}}/comments": ["get", "post"],
    f"{_REPO}/issues/{{issue_number}}/labels": ["get", "post", "put", "delete"],
    f"{_REPO}/issues/{{issue_number}}/labels/{{name}}": ["delete"],
    f"{_REPO}/issues/{{issue_number}}/reactions": ["get", "post"],
    f"{_REPO}/issues/comments/{{comment_id}}": ["get", "patch", "delete"],
    f"{_REPO}/issues/comments/{{comment_id}}/reactions": ["get", "post"],
    f"{_REPO}/pulls": ["get", "post"],
    f"{_REPO}/pulls/{{pull_number}}": ["get", "patch"],
    f"{_REPO}/pulls/{{pull_number}}/commits": ["get"],
    f"{_REPO}/pulls/{{pull_number}}/files": ["get"],
    f"{_REPO}/pulls/{{pull_number}}/comments": ["get"],
    f"{_REPO}/pulls/{{pull_number}}/merge": ["get", "put"],
    f"{_REPO}/pulls/{{pull_number}}/requested_reviewers": ["post"],
    f"{_REPO}/pulls/{{pull_number}}/reviews": ["get", "post"],
    f"{_REPO}/check-runs": ["post"],
    f"{_REPO}/check-runs/{{check_run_id}}": ["get", "patch"],
    f"{_REPO}/check-suites/{{check_suite_id}}": ["get"],
    f"{_REPO}/check-suites/{{check_suite_id}}/check-runs": ["get"],
    f"{_REPO}/actions/runs": ["get"],
    f"{_REPO}/actions/runs/{{run_id}}": ["get"],
    f"{_REPO}/actions/runs/{{run_id}}/jobs": ["get"],
    f"{_REPO}/actions/runs/{{run_id}}/rerun-failed-jobs": ["post"],
    f"{_REPO}/actions/jobs/{{job_id}}": ["get"],
    f"{_REPO}/actions/jobs/{{job_id}}/logs": ["get"],
}

# A path parameter that GitHub lets hold slashes.
_DEEP = {"path", "ref", "branch", "basehead"}
# What any operation may answer, described or not: credentials, permission, rate limits, validation, its own failures.
_ALWAYS_POSSIBLE = {"401", "403", "404", "422", "429", "500", "502", "503"}


@dataclass(frozen=True)
class Violation:
    """A request or an answer that GitHub's description does not allow."""

    method: str
    path: str
    problem: str

    def __str__(self) -> str:
        return f"{self.method} {self.path}: {self.problem}"


@dataclass(frozen=True)
class _Operation:
    pattern: re.Pattern[str]
    depth: int
    methods: Mapping[str, Json]


def check_request(method: str, path: str, query: Mapping[str, str], body: Json) -> list[Violation]:
    """Return what is wrong with a request; `body` is decoded JSON, or None where there is none.

    GitHub takes labels as a bare array too, as its description says in words only.
    """
    operation = _find(method, path)
    if isinstance(operation, Violation):
        return [operation]
    problems = list(_query_problems(operation, query))
    schema = _body_schema(operation)
    if schema is None:
        if body not in (None, {}):
            problems.append(f"takes no body, got {body!r}")
    elif path.endswith("/labels") and isinstance(body, list) and all(isinstance(name, str) for name in body):
        pass
    elif body is None:
        if operation["requestBody"].get("required"):
            problems.append("the body is missing")
    else:
        problems += _schema_problems(schema, body)
        problems += _unknown_keys(schema, body)
    return [Violation(method, path, problem) for problem in problems]


def check_response(method: str, path: str, status: int, body: Json) -> list[Violation]:
    """Return what is wrong with an answer; `body` is decoded JSON, or None where there is none."""
    operation = _find(method, path)
    if isinstance(operation, Violation):
        return [operation]
    described = operation["responses"].get(str(status))
    if described is None:
        if str(status) in _ALWAYS_POSSIBLE:
            return []
        return [Violation(method, path, f"answers {status}, described are {sorted(operation['responses'])}")]
    schema = _content_schema(_resolve(described))
    if schema is None:
        return []
    return [Violation(method, path, f"{status}: {problem}") for problem in _schema_problems(schema, body)]


def schema_problems(component: str, value: Json) -> list[str]:
    """Return how a value differs from one of the description's named schemas."""
    return _schema_problems({"$ref": f"#/components/schemas/{component}"}, value)


def _find(method: str, path: str) -> Json:
    matching = [operation for operation in _operations() if operation.pattern.fullmatch(path)]
    # Of equally general ones the longer template: `commits/{ref}/check-runs` before `commits/{ref}`.
    for operation in sorted(matching, key=lambda found: (found.depth, -len(found.pattern.pattern))):
        if method.lower() in operation.methods:
            return operation.methods[method.lower()]
    return Violation(method, path, "not among the operations that acrouter may use (tests/support/github/openapi.py)")


@cache
def _description() -> Json:
    target = npm.CACHE / f"github-openapi-{npm.lock_hash()}-{_operations_hash()}.json"
    if not target.exists():
        whole = json.loads(npm.openapi_description().read_text(encoding="utf-8"))
        paths = {path: {m: whole["paths"][path][m] for m in methods} for path, methods in OPERATIONS.items()}
        cut = to_json_schema(close_over(paths, whole))
        part = target.with_suffix(f".{id(cut)}.part")
        part.write_text(json.dumps(cut), encoding="utf-8")
        part.rename(target)
    return json.loads(target.read_text(encoding="utf-8"))


def _operations_hash() -> str:
    return hashlib.sha256(json.dumps({k: list(v) for k, v in OPERATIONS.items()}).encode()).hexdigest()[:8]


@cache
def _operations() -> Sequence[_Operation]:
    return [
        _Operation(_pattern(template), template.count("{") + (10 if _DEEP & _parameters(template) else 0), methods)
        for template, methods in _description()["paths"].items()
    ]


def _parameters(template: str) -> set[str]:
    return set(re.findall(r"\{(\w+)\}", template))


def _pattern(template: str) -> re.Pattern[str]:
    def part(match: re.Match[str]) -> str:
        return ".*" if match[1] == "path" else ".+" if match[1] in _DEEP else "[^/]+"

    return re.compile(re.sub(r"\{(\w+)\}", part, template))


def _resolve(value: Json) -> Json:
    while isinstance(value, dict) and "$ref" in value:
        target = _description()
        for step in value["$ref"].removeprefix("#/").split("/"):
            target = target[step]
        value = target
    return value


def _content_schema(holder: Json) -> Json:
    for kind, content in holder.get("content", {}).items():
        if kind.endswith("json"):
            return content.get("schema")
    return None


def _body_schema(operation: Json) -> Json:
    body = operation.get("requestBody")
    return None if body is None else _content_schema(_resolve(body))


def _query_problems(operation: Json, query: Mapping[str, str]) -> Iterator[str]:
    known = {p["name"]: p for p in map(_resolve, operation.get("parameters", [])) if p["in"] == "query"}
    for name, text in query.items():
        if name not in known:
            yield f"has no query parameter {name!r}"
            continue
        schema = _resolve(known[name]["schema"])
        value: Json = int(text) if schema.get("type") == "integer" and text.isdigit() else text
        if schema.get("type") == "boolean" and text in ("true", "false"):
            value = text == "true"
        yield from _schema_problems(schema, value)
    for name, parameter in known.items():
        if parameter.get("required") and name not in query:
            yield f"needs the query parameter {name!r}"


def _schema_problems(schema: Json, value: Json) -> list[str]:
    # References in the schema resolve from the document's root, so the root travels with it.
    document = {"components": _description()["components"], **({"allOf": [schema]} if "$ref" in schema else schema)}
    errors = Draft7Validator(document, format_checker=_FORMATS).iter_errors(value)
    return [f"{'/'.join(map(str, error.absolute_path)) or 'body'}: {error.message[:300]}" for error in errors]


def _unknown_keys(schema: Json, body: Json) -> Iterator[str]:
    """Yield keys that no alternative of the schema knows: GitHub ignores them, so a typing mistake would go unseen."""
    if not isinstance(body, dict):
        return
    known: set[str] = set()
    for alternative in alternatives(schema, _resolve):
        known |= set(alternative.get("properties", {}))
    if known:
        yield from (f"{key}: the operation has no such field" for key in body if key not in known)
