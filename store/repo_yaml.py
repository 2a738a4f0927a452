"""Reads `.acrouter.yml` as YAML with the line of every node, and refuses what grows without end or says two things."""

from dataclasses import dataclass
from typing import Any

import yaml

from store.errors import ConfigurationError
from store.yaml_keys import doubled_key

CONFIG_FILE = ".acrouter.yml"
_LARGEST = 64_000
"""Characters; a configuration is a page or two."""
_MOST_BRACKETS = 500
"""The parser's time grows with the square of how deep they stand in each other."""


@dataclass(frozen=True)
class Mistake:
    """One thing that is wrong in the file."""

    line: int | None
    """From 1; None where it is about the whole."""
    words: str
    """What is wrong and what to do."""

    def __str__(self) -> str:
        return f"{CONFIG_FILE}: {f'line {self.line}: ' if self.line is not None else ''}{self.words}"


class RepositoryConfigurationError(ConfigurationError):
    """The file has mistakes; the message has one line for each."""

    def __init__(self, *mistakes: Mistake) -> None:
        super().__init__("\n".join(map(str, mistakes)))
        self.mistakes = mistakes


@dataclass(frozen=True)
class Document:
    """The file's top level, and where everything stands in it."""

    values: dict[str, Any]
    root: yaml.Node | None

    def line_of(self, path: tuple[int | str, ...]) -> int | None:
        """Return the line (from 1) of the deepest node on `path`.

        Parts that name no node (the branches of a union) are skipped.
        """
        line, node = None, self.root
        for part in path:
            if isinstance(node, yaml.MappingNode):
                found = next((pair for pair in node.value if pair[0].value == part), None)
                if found is not None:
                    line, node = found[0].start_mark.line + 1, found[1]
            elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
                node = node.value[part]
                line = node.start_mark.line + 1
        return line


def read_document(text: str) -> Document:
    """Return the keys and values of `text` (YAML 1.1); an empty text has none.

    Raises:
        RepositoryConfigurationError: it is no YAML, or not of keys and values.
    """
    if len(text) > _LARGEST:
        raise _wrong(f"longer than {_LARGEST} characters. Shorten it.")
    if text.count("[") + text.count("{") > _MOST_BRACKETS:
        raise _wrong(f"more than {_MOST_BRACKETS} opening brackets. Use indented lists.")
    try:
        root = _compose(text)
        data = yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise _wrong(f"not valid YAML: {error.problem or error.context}.", mark) from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise _wrong(f"not valid YAML: {str(error).splitlines()[0]}.") from error
    if data is None:
        return Document({}, root)
    if not isinstance(data, dict):
        raise _wrong("the top level must be keys and values, as in 'test: pytest'.")
    if odd := [key for key in data if not isinstance(key, str)]:
        raise _wrong(f"the key '{odd[0]}' is not a text. Put it in quotes.")
    return Document(data, root)


def _compose(text: str) -> yaml.Node | None:
    """Return the tree of nodes with their lines; aliases, which can grow without end, and doubled keys are refused."""
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        if isinstance(event, yaml.AliasEvent):
            raise _wrong("aliases (*name) are not supported.", event.start_mark)
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    if root is not None and (doubled := doubled_key(root)) is not None:
        raise _wrong(f"the key '{doubled.value}' stands here twice.", doubled.start_mark)
    return root


def _wrong(words: str, mark: Any = None) -> RepositoryConfigurationError:
    return RepositoryConfigurationError(Mistake(mark.line + 1 if mark is not None else None, words))
