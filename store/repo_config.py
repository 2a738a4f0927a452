"""`.acrouter.yml`: what a repository decides for itself. Read from the default branch only."""

from typing import Annotated, Literal

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from store.errors import ConfigurationError
from store.suggest import explain

CONFIG_FILE = ".acrouter.yml"
_LARGEST = 64_000
"""Characters; a configuration is a page or two."""
_MOST_BRACKETS = 500
"""The parser's time grows with the square of how deep they stand in each other."""


def _on_or_off(value: object) -> object:
    """YAML 1.1 reads the bare words `on` and `off` as booleans."""
    return {True: "on", False: "off"}.get(value, value) if isinstance(value, bool) else value


def _one_or_many(value: object) -> object:
    return [value] if isinstance(value, str) else value


Command = Annotated[str, Field(min_length=1, max_length=4000)]
Name = Annotated[str, Field(min_length=1, max_length=300)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ModelRules(_Strict):
    """Which models of the pool may work here, by their names there."""

    allow: list[Name] = []
    """Empty: all of them."""
    deny: list[Name] = []


class RepositoryConfig(_Strict):
    """A repository's own rules; an operator's settings bound them. Amounts are in USD."""

    on_ci_failure: bool | list[Name] = False
    """Start a task when CI fails on a branch of the repository: for every workflow, or for those named."""
    setup: Annotated[list[Command], BeforeValidator(_one_or_many)] = []
    """Shell commands that install what the tests need; they run once, with the network. Empty: detected."""
    test: str = Field("", max_length=4000)
    """The command that runs the tests. Empty: detected."""
    models: ModelRules = ModelRules()
    budget_usd: float | None = Field(None, gt=0, allow_inf_nan=False)
    """Of one task."""
    max_attempts: int | None = Field(None, ge=1, le=20)
    dimension: Literal[
        "",
        "code_generation",
        "algorithm",
        "bug_fixing",
        "code_completion",
        "code_refactoring",
        "data_science",
        "multi_language",
        "code_understanding",
        "test_generation",
        "agentic_programming",
    ] = ""
    """What kind of task every task of this repository is. Empty: found in its text, or said by a label."""
    draft: bool = False
    """Open PRs as drafts."""
    blocked_paths: list[Name] = []
    """Patterns of paths that no patch may touch, besides those always blocked."""
    exploration: Annotated[Literal["on", "off"], BeforeValidator(_on_or_off)] = "on"
    """Whether the router may now and then try a model that is not the best by what is known."""

    def wants_ci_fix(self, workflow: str) -> bool:
        """Return whether a failure of this workflow starts a task."""
        if isinstance(self.on_ci_failure, bool):
            return self.on_ci_failure
        return workflow in self.on_ci_failure


def parse_repository_config(text: str) -> RepositoryConfig:
    """Return the configuration that `text` (YAML 1.1) describes; an empty text gives the defaults.

    Raises:
        ConfigurationError: one line for each mistake, with its line number where it is known.
    """
    if len(text) > _LARGEST:
        raise ConfigurationError(f"{CONFIG_FILE}: longer than {_LARGEST} characters. Shorten it.")
    if text.count("[") + text.count("{") > _MOST_BRACKETS:
        raise ConfigurationError(f"{CONFIG_FILE}: more than {_MOST_BRACKETS} opening brackets. Use indented lists.")
    try:
        root = _compose(text)
        data = yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{CONFIG_FILE}: line {mark.line + 1}" if mark else CONFIG_FILE
        raise ConfigurationError(f"{where}: not valid YAML: {error.problem or error.context}.") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ConfigurationError(f"{CONFIG_FILE}: not valid YAML: {str(error).splitlines()[0]}.") from error
    if data is None:
        return RepositoryConfig()
    if not isinstance(data, dict):
        raise ConfigurationError(f"{CONFIG_FILE}: the top level must be keys and values, as in 'test: pytest'.")
    if odd := [key for key in data if not isinstance(key, str)]:
        raise ConfigurationError(f"{CONFIG_FILE}: the key '{odd[0]}' is not a text. Put it in quotes.")
    try:
        return RepositoryConfig.model_validate(data)
    except ValidationError as error:
        lines = explain(error, CONFIG_FILE, RepositoryConfig).splitlines()
        places = [_line_of(root, item["loc"]) for item in error.errors()]
        raise ConfigurationError("\n".join(_with_line(*pair) for pair in zip(lines, places, strict=True))) from error


def _compose(text: str) -> yaml.Node | None:
    """Return the tree of nodes with their lines; aliases, which can grow without end, and doubled keys are refused."""
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        if isinstance(event, yaml.AliasEvent):
            raise _mistake(event, "aliases (*name) are not supported")
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    if root is not None:
        _refuse_doubled_keys(root)
    return root


def _refuse_doubled_keys(node: yaml.Node) -> None:
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    raise _mistake(key, f"the key '{key.value}' stands here twice")
                seen.add(key.value)
            _refuse_doubled_keys(value)
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            _refuse_doubled_keys(item)


def _mistake(place: yaml.Event | yaml.Node, problem: str) -> ConfigurationError:
    mark = place.start_mark
    where = f"{CONFIG_FILE}: line {mark.line + 1}" if mark else CONFIG_FILE
    return ConfigurationError(f"{where}: {problem}.")


def _line_of(node: yaml.Node | None, path: tuple[int | str, ...]) -> int | None:
    """Return the line (from 1) of the deepest node on `path`; parts that name no node (union branches) are skipped."""
    line = None
    for part in path:
        if isinstance(node, yaml.MappingNode):
            found = next((pair for pair in node.value if pair[0].value == part), None)
            if found is not None:
                line, node = found[0].start_mark.line + 1, found[1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            node = node.value[part]
            line = node.start_mark.line + 1
    return line


def _with_line(message: str, line: int | None) -> str:
    return message if line is None else message.replace(f"{CONFIG_FILE}:", f"{CONFIG_FILE}: line {line}:", 1)
