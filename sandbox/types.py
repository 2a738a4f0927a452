"""A sandbox: what is started, what may be asked of it, and of the backend that gives it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple, Protocol, runtime_checkable

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
    service_memory_mb: int = 2048
    """Of each service beside it. What it writes lies in memory too, and may take half of this."""
    service_cpus: float = 1.0

    @property
    def tree_bytes(self) -> int:
        """Of the disk, what the repository's tree may take: 5/8. The rest is /tmp's (2/8) and the home's (1/8)."""
        return 5 * max(self.disk_mb // 8, 1) << 20


DEFAULT_LIMITS = Limits()


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


class FileDigest(NamedTuple):
    """What a file holds."""

    size: int
    """In bytes."""
    sha256: str
    """In hexadecimal digits."""


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

    def changed(self, files: Mapping[str, FileDigest]) -> Sequence[str]:
        """Return which of the files hold something else, or cannot be read, in their order (links are not followed)."""
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
    """Hash of whose code may use the result, and of what it depends on: commands, lock files, base image."""
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
