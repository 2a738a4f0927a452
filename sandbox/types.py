"""The words of the sandbox as frozen dataclasses, and the Protocols at its seams."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

from sandbox.evidence import Evidence

WORKSPACE = "/workspace"
"""Where the repository stands inside every sandbox; the agent's home is elsewhere."""

TRUSTED = "/tmp/.acrouter-trusted"  # noqa: S108  (inside the sandbox)
"""A folder of our own inside every sandbox, made by a trusted command before the agent starts and closed to it."""


@dataclass(frozen=True)
class Limits:
    """What one sandbox may use."""

    memory_mb: int = 2048
    cpus: float = 1.0
    pids: int = 512
    disk_mb: int = 2048
    """Of the writable tmpfs mounts."""
    output_bytes: int = 1_000_000
    """Of one command; the middle of a longer output is dropped while it streams."""


@dataclass(frozen=True)
class Service:
    """A server beside a sandbox, in its network: reached at `name` and at localhost, and it reaches nothing else."""

    name: str
    image: str
    """A reference that the backend's `ensure_service_image` gave."""
    environment: Mapping[str, str] = field(default_factory=dict)
    command: Sequence[str] = ()
    """Instead of the image's own."""
    ready: str = ""
    """A shell command in the service that succeeds once it can be used; empty: what is known of the image."""
    writable: Sequence[str] = ()
    """Folders besides the image's volumes, /tmp and /run."""


@dataclass(frozen=True)
class SandboxSpec:
    """What to start."""

    image: str
    """A reference that the backend's `prepare` gave."""
    labels: Mapping[str, str]
    """At least `task` (the task's id) and `owner` (the worker): leftovers are found by them."""
    limits: Limits = Limits()
    services: Sequence[Service] = ()
    """Started with the sandbox and ended with it: nothing of one test run is left for the next."""


@dataclass(frozen=True)
class CommandResult:
    """How one command ended. `output` is stdout and stderr together, decoded with replacement."""

    output: str
    exit_code: int
    timed_out: bool
    duration_s: float
    truncated: bool = False


class Sandbox(Protocol):
    """A running sandbox: no network, no secrets, nothing of the host but what was put in."""

    def execute(self, command: str, *, timeout_s: float, trusted: bool = False) -> CommandResult:
        """Run `command` with bash in WORKSPACE. `trusted` runs it as the sandbox's own root, for our own commands.

        A command past its time is killed with all its children.
        """
        ...

    def put_tree(self, archive: Path) -> None:
        """Unpack an uncompressed tar of the repository into WORKSPACE, owned by the agent's user."""
        ...

    def put_file(self, path: str, content: bytes) -> None: ...

    def read_file(self, path: str, *, limit: int = 5_000_000) -> bytes | None:
        """Return a regular file's first `limit` bytes, or None where there is none (links are not followed)."""
        ...

    def close(self) -> None:
        """End it with all its processes and free all that it used. May be called twice."""
        ...


@runtime_checkable
class ConversingSandbox(Sandbox, Protocol):
    """A sandbox whose commands can have a line to the host while they run: the only way out that there is."""

    def converse(self, command: str, *, timeout_s: float, relay: Callable[[bytes], bytes | None]) -> CommandResult: ...


@dataclass(frozen=True)
class SetupPlan:
    """How to make a repository's dependencies available, once, with the network."""

    commands: Sequence[str]
    cache_key: str
    """Hash of everything that the result depends on: commands, lock files, base image."""
    source: str
    """Where the plan comes from, for people: `.acrouter.yml`, `pyproject.toml`, ..."""
    base: str = ""
    """The image that it is made on, from `ensure_image`; empty: the base image."""
    named_images: Sequence[tuple[str, str]] = ()
    """Images that the repository's own containers start from, each after the file that says so. They are not used."""


class CacheLimits(NamedTuple):
    """What may be kept to be quick."""

    size: int
    """In bytes, of everything of one kind together."""
    age_s: float
    """Since the last use."""


class Backend(Protocol):
    """Docker, or bubblewrap where there is no daemon."""

    name: Literal["docker", "bubblewrap"]

    def describe(self) -> str:
        """Return one sentence for people: what isolates, and what is given up."""
        ...

    def ensure_base(self, progress: "Progress | None" = None) -> str:
        """Return the base image's reference, building it where it is missing.

        Raises:
            ImageError: it can neither be pulled nor built.
        """
        ...

    def ensure_image(self, image: str) -> str:
        """Return an image of somebody's choice as one that sandboxes start from: pulled, and with a Python environment.

        Raises:
            ImageError: there are no images here, or this one cannot be had or lacks what a sandbox needs.
        """
        ...

    def ensure_service_image(self, image: str) -> str:
        """Return an image of somebody's choice that services start from: pulled.

        Raises:
            ImageError: there are no images here, or this one cannot be had.
        """
        ...

    def prepare(self, archive: Path, plan: SetupPlan, *, timeout_s: float, labels: Mapping[str, str]) -> str:
        """Return the reference of an image with the plan's dependencies installed, from cache where possible.

        `archive` is the repository's tree at the pinned commit. The set-up has the network and no secret.

        Raises:
            ImageError: a set-up command failed; the message carries the end of its output.
        """
        ...

    def identify(self, image: str) -> str:
        """Return what tells an image from another one that had its name before.

        Raises:
            SandboxError: there is no such image.
        """
        ...

    def open(self, spec: SandboxSpec) -> Sandbox: ...

    def remove_leftovers(self, running_tasks: Callable[[], frozenset[str]]) -> int:
        """Remove every sandbox of ours whose task nobody works on; return how many.

        `running_tasks` is asked after the sandboxes were listed: one that was started in between is not in the list.
        """
        ...

    def remove_task(self, task: str) -> int:
        """Remove every sandbox of one task."""
        ...

    def evict(self, limits: CacheLimits) -> int:
        """Remove images of set-ups that were not used for too long or take too much; return how many."""
        ...


class Progress(Protocol):
    def __call__(self, message: str) -> None: ...


# --- the agent ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ModelEndpoint:
    """How to call one model, resolved: the key is here and nowhere else."""

    name: str
    litellm_id: str
    input_usd_per_mtok: float
    output_usd_per_mtok: float
    cached_input_usd_per_mtok: float | None = None
    api_base: str | None = None
    api_key: str | None = field(default=None, repr=False)
    context_tokens: int = 128_000
    max_output_tokens: int = 4096
    timeout_s: float = 120.0
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Further arguments of `litellm.completion`, e.g. temperature."""

    def cost_usd(self, tokens_in: int, tokens_out: int, cached: int = 0) -> float:
        """Return the price of one call; `cached` of the input tokens were read from the provider's cache."""
        cached_price = (
            self.input_usd_per_mtok if self.cached_input_usd_per_mtok is None else self.cached_input_usd_per_mtok
        )
        return (
            (tokens_in - cached) * self.input_usd_per_mtok
            + cached * cached_price
            + tokens_out * self.output_usd_per_mtok
        ) / 1_000_000


class Meter(Protocol):
    """Money and the right to go on, asked before each model call and told after it."""

    def reserve(self, usd: float) -> str:
        """Reserve the most that the next call can cost and return the reservation's id.

        Raises:
            BudgetExceeded: a cap would be passed.
            StopRequested: the task was stopped or its lease is lost.
        """
        ...

    def settle(self, reservation: str, usd: float) -> None:
        """Replace a reservation by what the call cost (0 for a call that was never billed)."""
        ...


@dataclass(frozen=True)
class AgentLimits:
    steps: int = 40
    cost_usd: float = 1.0
    wall_s: float = 1800.0
    command_s: float = 60.0


@dataclass(frozen=True)
class AgentTask:
    """What the agent is told. All but `test_command` and `notes` of our own is untrusted and quoted in the prompt."""

    title: str
    text: str
    hint: str = ""
    test_command: str = ""
    notes: str = ""
    """The repository's contributor notes, cut."""
    previous: str = ""
    """What earlier attempts tried and how they failed."""


@dataclass(frozen=True)
class AgentRun:
    """How the agent ended. A patch may be empty."""

    exit_status: str
    steps: int
    tokens_in: int
    tokens_out: int
    cost_usd: float
    patch: str
    trajectory: Mapping[str, Any]
    """mini-swe-agent's format."""
    error: str = ""


# --- tests and verdict --------------------------------------------------------------------------------------------

TestStatus = Literal["passed", "failed", "error", "skipped"]


RunnerName = Literal["pytest", "unittest", "node", "jest", "vitest", "go", "cargo", "maven", "gradle", "exit_code"]
"""How a run's results are read; `exit_code`: not at all, the tests are one."""


@dataclass(frozen=True)
class TestCommand:
    """How to run a repository's tests."""

    __test__ = False  # not one of pytest's

    command: str
    runner: RunnerName
    source: str
    """Where it comes from, for people."""


@dataclass(frozen=True)
class TestReport:
    """One run of the tests. `results` is empty where only the exit code is known."""

    __test__ = False

    command: str
    results: Mapping[str, TestStatus]
    exit_code: int
    timed_out: bool
    duration_s: float
    output_tail: str
    note: str = ""
    """Why the results are not to be believed, or are missing; empty where exit code, counts and results agree."""
    rewritten: Sequence[str] = ()
    """Test modules that were not any more what they had been when the run ended."""
    files: frozenset[str] | None = None
    """Of a run in parts: the test files of the parts that came to their end. None: all were run at once."""

    @property
    def passed(self) -> int:
        return sum(status == "passed" for status in self.results.values())

    @property
    def failed(self) -> int:
        return sum(status in ("failed", "error") for status in self.results.values())


@dataclass(frozen=True)
class Signal:
    """One fact about a patch, for the score."""

    name: str
    value: float | None
    """In [0, 1]; None where it could not be had: it is left out and the other weights are renormalised."""
    weight: float
    evidence: str


Verdict = Literal["verified", "unverified", "breaking", "rejected", "empty"]
"""verified: something that failed passes now and nothing broke. unverified: nothing broke and nothing proves it.
breaking: tests that passed fail now. rejected: the patch may not be applied. empty: no change."""


@dataclass(frozen=True)
class VerificationResult:
    verdict: Verdict
    score: float
    signals: Sequence[Signal]
    summary: str
    before: TestReport | None
    after: TestReport | None
    fail_to_pass: Sequence[str] = ()
    pass_to_fail: Sequence[str] = ()
    evidence: Evidence = field(default_factory=Evidence)
    baseline: TestReport | None = None
    """The whole suite without the patch, for other attempts; `before` is what was compared."""


# --- checkouts ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class GitRemote:
    """Where to fetch from or push to. The token goes to git by its environment, never into a URL or an argument."""

    url: str
    username: str = "x-access-token"
    token: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Author:
    name: str
    email: str
