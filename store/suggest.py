"""Turns errors of validating and reading into sentences that name the mistake and suggest the fix."""

import difflib
from collections.abc import Iterable

from pydantic import BaseModel, ValidationError


def did_you_mean(wrong: str, known: Iterable[str]) -> str:
    """Return " Did you mean 'x'?" for the closest known name, or an empty string."""
    close = difflib.get_close_matches(wrong, list(known), n=1, cutoff=0.6)
    return f" Did you mean '{close[0]}'?" if close else ""


def unreadable(error: OSError | UnicodeDecodeError) -> str:
    """Return why a text file cannot be read, as the end of a sentence."""
    return "it is not a text in UTF-8" if isinstance(error, UnicodeDecodeError) else error.strerror or str(error)


def explain(error: ValidationError, source: str, model: type[BaseModel]) -> str:
    """Return one line for each mistake in `error`, each starting with where it stands in `source`."""
    lines = []
    for item in error.errors():
        path = [str(part) for part in item["loc"]]
        where = f"{source}: {'.'.join(path) or 'top level'}"
        if item["type"] == "extra_forbidden":
            known = _fields_at(model, path[:-1])
            lines.append(f"{where}: unknown key '{path[-1]}'.{did_you_mean(path[-1], known)}")
        else:
            lines.append(f"{where}: {item['msg'].removeprefix('Value error, ')}")
    return "\n".join(lines)


def _fields_at(model: type[BaseModel], path: list[str]) -> list[str]:
    """Names of the fields of the model found by walking `path` (list indexes and map keys are stepped over)."""
    current: type[BaseModel] = model
    for part in path:
        field = current.model_fields.get(part)
        if field is None:
            continue
        for candidate in _models_in(field.annotation):
            current = candidate
            break
    return list(current.model_fields)


def _models_in(annotation: object) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    found: list[type[BaseModel]] = []
    for argument in getattr(annotation, "__args__", ()):
        found.extend(_models_in(argument))
    return found
