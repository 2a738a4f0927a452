"""`.acrouter.yml`: what a repository decides for itself. Read from the default branch only."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from store.repo_yaml import CONFIG_FILE, Mistake, RepositoryConfigurationError, read_document
from store.suggest import explain

__all__ = [
    "CONFIG_FILE",
    "ModelRules",
    "OrganisationRules",
    "RepositoryConfig",
    "ServiceRules",
    "Triggers",
    "Who",
    "parse_repository_config",
    "under",
]


def _on_or_off(value: object) -> object:
    """YAML 1.1 reads the bare words `on` and `off` as booleans."""
    return {True: "on", False: "off"}.get(value, value) if isinstance(value, bool) else value


def _one_or_many(value: object) -> object:
    return [value] if isinstance(value, str) else value


Command = Annotated[str, Field(min_length=1, max_length=4000)]
Name = Annotated[str, Field(min_length=1, max_length=300)]
Team = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.\-]{0,99}$")]
# https://pkg.go.dev/github.com/distribution/reference: host and port, path, tag, digest.
_PART = "[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
Image = Annotated[
    str,
    Field(
        pattern=rf"^(?:{_PART}(?::[0-9]{{1,5}})?/)?{_PART}(?:/{_PART})*"
        r"(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@sha256:[0-9a-f]{64})?$",
        max_length=300,
    ),
]
ServiceName = Annotated[str, Field(pattern=r"^[a-z](?:[a-z0-9-]{0,30}[a-z0-9])?$")]
VariableName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,99}$")]
Folder = Annotated[str, Field(pattern=r"^(?:/[A-Za-z0-9_][A-Za-z0-9_.-]*)+$", max_length=300)]
Amount = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ModelRules(_Strict):
    """Which models of the pool may work here, by their names there."""

    allow: list[Name] = []
    """Empty: all of them."""
    deny: list[Name] = []


class Triggers(_Strict):
    """What starts work, besides failed CI (`on_ci_failure`)."""

    label: str = Field("", max_length=50)
    """The label that starts a task. Empty: the operator's, `acrouter` unless changed."""
    commands: bool = True
    """Whether `/route fix` and `/route retry` start tasks."""


class Who(_Strict):
    """Who may start work. GitHub is asked at the moment of use."""

    permission: Literal["write", "maintain", "admin"] = "write"
    """The least that a person needs on this repository."""
    teams: list[Team] = []
    """Slugs of teams of the organisation; where there are any, a person must be in one of them as well. Needs the
    App's organisation permission Members: read."""
    bots: list[Name] = []
    """Logins of other Apps' bots that may start work as well, as in `renovate[bot]`. acrouter itself never may."""


class ServiceRules(_Strict):
    """A server that the tests need, beside every sandbox: fresh each time, reached at its name and at localhost."""

    image: Image
    """As in `postgres:16`. The operator says which images may be used (ACROUTER_SANDBOX_IMAGES)."""
    env: dict[VariableName, Annotated[str, Field(max_length=4000)]] = {}
    """Variables of the service alone. No secrets: the file is public to everybody who reads the repository."""
    command: str = Field("", max_length=4000)
    """Instead of the image's own command, in words as a shell would split them."""
    ready: str = Field("", max_length=4000)
    """A shell command in the service that succeeds once it can be used. Empty: the image's own health check, or what is
    known of the image (Postgres, Redis, MySQL); else it need only run."""
    writable: list[Folder] = Field([], max_length=10)
    """Folders that it writes to besides its volumes, /tmp and /run. They lie in memory."""


class OrganisationRules(_Strict):
    """What only the file in the organisation's `.github` repository can say, for all repositories together."""

    day_budget_usd: Amount | None = None
    month_budget_usd: Amount | None = None
    onboarding: Annotated[Literal["required", "off"] | None, BeforeValidator(_on_or_off)] = None
    """`off`: repositories without a file of their own work by this one. None: as the operator decides."""


class RepositoryConfig(_Strict):
    """A repository's own rules; an operator's settings bound them. Amounts are in USD, days and months are UTC's."""

    triggers: Triggers = Triggers()
    who: Who = Who()

    on_ci_failure: bool | list[Name] = False
    """Start a task when CI fails on a branch of the repository: for every workflow, or for those named."""
    rerun_flakes: bool = True
    """Have failed jobs run once more before money is spent on them, where the App may (Actions: write)."""
    setup: Annotated[list[Command], BeforeValidator(_one_or_many)] = []
    """Shell commands that install what the tests need; they run once, with the network. Empty: detected."""
    test: str = Field("", max_length=4000)
    """The command that runs the tests. Empty: detected."""
    submodules: bool = False
    """Fetch submodules that are on the same host and public; their own submodules stay empty."""
    lfs: bool = False
    """Fetch the files that Git LFS keeps elsewhere: 1000 at most, 512 MB together. A patch cannot change them."""
    lint: Annotated[list[Command], Field(max_length=10), BeforeValidator(_one_or_many)] = []
    """Commands that check the code's form. What they find with a patch and not without it lowers its score a little."""
    image: Image | Literal[""] = ""
    """The image that sandboxes start from, where the operator allows it (ACROUTER_SANDBOX_IMAGES). It needs python3,
    bash, tar and git. Empty: the operator's own."""
    services: dict[ServiceName, ServiceRules] = Field({}, max_length=5)
    """Servers that the tests need, by name."""
    models: ModelRules = ModelRules()
    budget_usd: Amount | None = None
    """Of one task."""
    day_budget_usd: Amount | None = None
    """Of all tasks of this repository in a day."""
    month_budget_usd: Amount | None = None
    person_day_budget_usd: Amount | None = None
    """Of all tasks that one person starts here in a day."""
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
    escalation: Annotated[Literal["on", "off"], BeforeValidator(_on_or_off)] = "on"
    """Whether another model tries where the first one failed."""
    draft: bool = False
    """Open PRs as drafts."""
    push_fixes: bool = False
    """Push a verified fix of a PR or of a failed run to its own branch, where that is the repository's and has not
    moved, instead of opening a PR to it. The default branch is never pushed to."""
    reviewers: list[Name] = []
    """Logins, or `team:SLUG`, that are asked to review acrouter's PRs."""
    blocked_paths: list[Name] = []
    """Patterns of paths that no patch may touch, besides those always blocked."""
    allowed_paths: list[Name] = []
    """Patterns of the only paths that a patch may touch. Empty: all that are not blocked."""
    exploration: Annotated[Literal["on", "off"], BeforeValidator(_on_or_off)] = "on"
    """Whether the router may now and then try a model that is not the best by what is known."""
    judge: Annotated[Literal["on", "off"], BeforeValidator(_on_or_off)] = "on"
    """Whether the operator's judge, a model, may read tasks and patches, where there is one (ACROUTER_JUDGE_MODEL)."""
    organisation: OrganisationRules = OrganisationRules()

    def wants_ci_fix(self, workflow: str) -> bool:
        """Return whether a failure of this workflow starts a task."""
        if isinstance(self.on_ci_failure, bool):
            return self.on_ci_failure
        return workflow in self.on_ci_failure


def parse_repository_config(text: str) -> RepositoryConfig:
    """Return the configuration that `text` (YAML 1.1) describes; an empty text gives the defaults.

    Raises:
        RepositoryConfigurationError: one mistake each, with its line where it is known.
    """
    document = read_document(text)
    try:
        return RepositoryConfig.model_validate(document.values)
    except ValidationError as error:
        prefix = f"{CONFIG_FILE}: "
        lines = explain(error, CONFIG_FILE, RepositoryConfig).splitlines()
        places = [document.line_of(item["loc"]) for item in error.errors()]
        mistakes = [Mistake(line, words.removeprefix(prefix)) for words, line in zip(lines, places, strict=True)]
        raise RepositoryConfigurationError(*mistakes) from error


def under(organisation: RepositoryConfig, own: RepositoryConfig | None) -> RepositoryConfig:
    """Return a repository's configuration below its organisation's: each key that its own file has replaces the whole
    key of the organisation's, but `organisation`, which stays the organisation's.
    """
    values: dict[str, Any] = {name: getattr(own, name) for name in own.model_fields_set} if own is not None else {}
    return organisation.model_copy(update=values | {"organisation": organisation.organisation})
