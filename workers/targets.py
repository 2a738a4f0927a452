"""Where a task comes from and where its answer goes: GitHub (`forge_target`) or a local repository (`local_target`)."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from sandbox.checkout import Mirror
from store.repo_config import RepositoryConfig
from workers.errors import PipelineError
from workers.run import Run

if TYPE_CHECKING:
    from workers.attempts import Attempted
    from workers.context import Work


class TargetClosed(PipelineError):  # noqa: N818
    """The issue or PR was closed: there is nothing to do any more."""


class TargetMoved(PipelineError):  # noqa: N818
    """The branch went another way, so that there is nothing to hand in; the message says what to do."""


class Refusal(PipelineError):  # noqa: N818
    """A rule forbids the work; the message says which and what to do."""


@dataclass(frozen=True)
class Source:
    """A task as its target tells it, at one pinned commit."""

    repository: str
    title: str
    """Untrusted, like `text`."""
    text: str
    base_ref: str
    base_sha: str
    mirror: Mirror
    shares_setup_with: str
    """Whose code may use what this commit's set-up leaves: see `sandbox.setup_sharing`."""
    link: str = ""
    config: RepositoryConfig = field(default_factory=RepositoryConfig)
    missing: Sequence[str] = ()
    """Parts of the tree that cannot be had, as sentences."""
    is_fork: bool = False
    """The commit is a fork's: the patch is offered in words, and nothing is pushed."""


class Target(Protocol):
    def fetch(self, run: Run) -> Source:
        """Read the task's words and bring its commit into the mirror."""
        ...

    def adopt(self, run: Run) -> bool:
        """Look for the answer that a lost worker handed in before it could say so, and put the task into its state.

        Returns whether there was one.
        """
        ...

    def publish(self, run: Run, work: "Work", best: "Attempted") -> None:
        """Hand in the best attempt's patch and put the task into its next state."""
        ...
