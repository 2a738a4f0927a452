"""Says of a setting that is wrong where it stands, under the name by which a person wrote it there."""

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import UnionType
from typing import Union, get_args, get_origin

from dotenv.parser import Binding, parse_stream
from pydantic import AliasChoices, BaseModel, SecretStr, ValidationError
from pydantic.fields import FieldInfo
from pydantic_settings import SettingsError

from store.errors import ConfigurationError
from store.scrub import scrub

_SHOWN = 60
"""Characters of a wrong value: enough to know it again."""


@dataclass(frozen=True)
class Places:
    """Where settings come from; the environment goes before the file."""

    file: str
    in_file: Mapping[str, str]
    prefix: str

    def names(self) -> set[str]:
        return {*os.environ, *self.in_file}

    def of(self, name: str) -> str:
        """Return `environment` or the file's name."""
        return self.file if self._value(self.in_file, name) and not self._value(os.environ, name) else "environment"

    def find(self, field: str, info: FieldInfo) -> tuple[str, str]:
        """Return the place of a field's value and the name that it has there."""
        names = _names(field, info, self.prefix)
        for place, values in (("environment", os.environ), (self.file, self.in_file)):
            for name in names:
                if found := self._value(values, name):
                    return place, found
        return "settings", names[0]

    @staticmethod
    def _value(values: Mapping[str, str], name: str) -> str | None:
        return next((there for there in values if there.upper() == name.upper()), None)


def read_places(file: str, prefix: str) -> Places:
    """Read the names that the environment file holds.

    Raises:
        ConfigurationError: it is no text, or a line of it is no setting.
    """
    path = Path(file)
    if not path.is_file():
        return Places(file, {}, prefix)
    try:
        with path.open(encoding="utf-8") as stream:
            lines = list(parse_stream(stream))
    except OSError as error:
        raise ConfigurationError(f"{file}: cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{file}: is not a text file in UTF-8.") from error
    # Without the line itself: it may hold what should be secret.
    wrong = [
        f"{file}: line {_line_number(line)} is no setting. Write NAME=value, a value with spaces or # in quotes, and # "
        "before what is for people."
        for line in lines
        if line.error
    ]
    if wrong:
        raise ConfigurationError("\n".join(wrong))
    return Places(file, {line.key: line.value or "" for line in lines if line.key}, prefix)


def explain_wrong(error: ValidationError, places: Places, model: type[BaseModel]) -> str:
    """Return one line for each wrong value: where it stands, its name there, and what is wrong with it."""
    fields = {
        key: name
        for name, info in model.model_fields.items()
        for key in (name, *(_names(name, info, places.prefix) if info.validation_alias else ()))
    }
    lines = []
    for item in error.errors():
        parts = [str(part) for part in item["loc"]]
        told = item["msg"].removeprefix("Value error, ")
        if not parts or parts[0] not in fields:
            lines.append(f"settings: {'.'.join(parts) or 'top level'}: {told}")
            continue
        field = fields[parts[0]]
        info = model.model_fields[field]
        place, name = places.find(field, info)
        inner = f" ({'.'.join(parts[1:])})" if parts[1:] else ""
        lines.append(f"{place}: {name}{inner}{_shown(info, item['input'])}: {told}")
    return "\n".join(lines)


def explain_unparsed(error: SettingsError, places: Places, model: type[BaseModel]) -> str:
    """Return the line for a value that must be JSON and is not."""
    match = re.search(r'field "(\w+)"', str(error))
    if match is None or match[1] not in model.model_fields:
        return f"settings: {scrub(str(error))}"
    info = model.model_fields[match[1]]
    place, name = places.find(match[1], info)
    examples: Sequence[object] = info.examples or [info.get_default(call_default_factory=False)]
    return f"{place}: {name} is no JSON; write it like {name}={json.dumps(examples[0])}"


def _line_number(line: Binding) -> int:
    """The parser counts the blank lines before a line to it."""
    text = line.original.string
    return line.original.line + text[: len(text) - len(text.lstrip())].count("\n")


def _names(field: str, info: FieldInfo, prefix: str) -> list[str]:
    alias = info.validation_alias
    if isinstance(alias, AliasChoices):
        return [str(choice) for choice in alias.choices]
    return [alias if isinstance(alias, str) else prefix + field.upper()]


def _shown(info: FieldInfo, value: object) -> str:
    """The value, where it cannot be secret: a URL may hold a password."""
    union = get_origin(info.annotation) in (Union, UnionType)
    kinds = get_args(info.annotation) if union else (info.annotation,)
    if str in kinds or SecretStr in kinds or not isinstance(value, str | int | float):
        return ""
    text = scrub(str(value))
    return f"={text[:_SHOWN]}{'...' if len(text) > _SHOWN else ''}"
