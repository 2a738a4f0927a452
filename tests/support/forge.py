"""A forge in memory, for stories about the workers alone: it keeps what was written, and can refuse or be slow."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal, cast

from sandbox.errors import SandboxError
from sandbox.types import Backend, Sandbox, SandboxSpec
from store.database import Database
from store.settings import Settings
from tests.support.routing import make_pool
from tests.support.rows import QueueOfNames
from workers.brain import Brain
from workers.errors import ForgeError
from workers.ports import CheckRunContent, Forge, PullRequestInfo, RepositoryRef, StateLabel
from workers.runtime import Runtime


@dataclass
class MemoryForge:
    """Fulfils the part of `workers.ports.Forge` that reports and publishing use."""

    comments: dict[int, list[str]] = field(default_factory=dict)
    """Bodies by their target, in the order of their ids."""
    labels: dict[int, StateLabel] = field(default_factory=dict)
    checks: dict[int, tuple[str, CheckRunContent]] = field(default_factory=dict)
    """Commit and face by id."""
    pulls: dict[str, PullRequestInfo] = field(default_factory=dict)
    """By their head's branch."""
    refusals: dict[str, list[ForgeError]] = field(default_factory=dict)
    """What the next calls of a method raise, by its name."""
    before: Callable[[str], None] = lambda _method: None
    """Called with a method's name before it does its work."""
    calls: list[str] = field(default_factory=list)

    def upsert_status_comment(
        self, repository: RepositoryRef, number: int, marker: str, body: str, known_id: int | None
    ) -> int:
        self._enter("upsert_status_comment")
        there = self.comments.setdefault(number, [])
        found = known_id if known_id is not None else next((i for i, b in enumerate(there) if marker in b), None)
        self.before("between looking and writing")
        if found is None:
            there.append(body)
            return len(there) - 1
        there[found] = body
        return found

    def upsert_check_run(
        self, repository: RepositoryRef, head_sha: str, external_id: str, content: CheckRunContent, known_id: int | None
    ) -> int:
        self._enter("upsert_check_run")
        check_id = known_id if known_id is not None else len(self.checks) + 1
        self.checks[check_id] = (head_sha, content)
        return check_id

    def set_state_label(self, repository: RepositoryRef, number: int, state: StateLabel, trigger: str) -> None:
        self._enter("set_state_label")
        self.labels[number] = state

    def find_pull_request(self, repository: RepositoryRef, head_ref: str) -> PullRequestInfo | None:
        self._enter("find_pull_request")
        return self.pulls.get(head_ref)

    def merge(self, branch: str) -> None:
        self.pulls[branch] = replace(self.pulls[branch], state="closed", merged=True, merge_sha="f" * 40)

    def _enter(self, method: str) -> None:
        self.calls.append(method)
        self.before(method)
        if self.refusals.get(method):
            raise self.refusals[method].pop(0)


def pull_request(number: int, branch: str, head_sha: str) -> PullRequestInfo:
    return PullRequestInfo(
        number=number,
        title="A fix",
        body="",
        state="open",
        merged=False,
        head_ref=branch,
        head_sha=head_sha,
        head_repository="octo/tools",
        base_repository="octo/tools",
        base_ref="main",
        url=f"https://github.example/octo/tools/pull/{number}",
    )


class NoSandboxes:
    """A backend that cleans up and has a base image, and starts nothing."""

    name: Literal["docker", "bubblewrap"] = "docker"

    def __init__(self) -> None:
        self.removed: list[str] = []

    def ensure_base(self) -> str:
        return "base"

    def identify(self, image: str) -> str:
        return image

    def open(self, spec: SandboxSpec) -> Sandbox:
        raise SandboxError(f"No sandbox of {spec.image} is started in this test.")

    def remove_task(self, task: str) -> int:
        self.removed.append(task)
        return 0

    def remove_leftovers(self, running_tasks: Callable[[], frozenset[str]]) -> int:
        self.removed.append(f"all but {sorted(running_tasks())}")
        return 0


def make_runtime(
    database: Database,
    settings: Settings,
    forge: MemoryForge | None = None,
    name: str = "worker",
    backend: Backend | None = None,
) -> Runtime:
    """A worker's runtime around a forge in memory, without sandboxes unless a backend is given."""
    from routing import Router

    pool = make_pool()
    return Runtime(
        settings=settings,
        database=database,
        queue=QueueOfNames(),
        forge=cast("Forge", forge) if forge is not None else None,
        backend=backend or cast("Backend", NoSandboxes()),
        pool=pool,
        brain=Brain(Router(pool, seed=1), database, settings.memory_capacity),
        name=name,
    )
