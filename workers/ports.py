"""What the workers need of the outside, as Protocols that `bot` fulfils: the workers import nothing of GitHub's.

Every write of a Forge looks before it writes: called again after a crash it finds what is there and changes that.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

from sandbox.remotes import Author, GitRemote


@dataclass(frozen=True)
class RepositoryRef:
    """A repository as the store knows it."""

    id: int
    installation_id: int
    full_name: str


@dataclass(frozen=True)
class IssueInfo:
    number: int
    title: str
    body: str
    state: Literal["open", "closed"]
    author: str
    labels: Sequence[str] = ()


@dataclass(frozen=True)
class PullRequestInfo:
    number: int
    title: str
    body: str
    state: Literal["open", "closed"]
    merged: bool
    head_ref: str
    head_sha: str
    head_repository: str
    """Full name; empty where the fork was deleted."""
    base_repository: str
    """Full name of the repository that it is in, as it was at the same moment."""
    base_ref: str
    url: str
    merge_sha: str = ""
    author: str = ""
    """Login of who opened it; empty where the account is gone."""
    pushed_at: datetime | None = None
    """When somebody pushed to its head's repository last, to whatever branch; None where that is not told."""

    @property
    def is_fork(self) -> bool:
        return self.head_repository.lower() != self.base_repository.lower()


@dataclass(frozen=True)
class FileChange:
    """What a commit or a PR does to one file."""

    path: str
    old_path: str
    """The same, unless the file was renamed."""
    patch: str
    """Hunks of a unified diff; empty where GitHub gives none: binary, very large, or renamed only."""


@dataclass(frozen=True)
class FailedJob:
    name: str
    failed_steps: Sequence[str]
    log: str
    """The failing part and the tail, stripped of ANSI, cut."""


@dataclass(frozen=True)
class CiFailure:
    """A failed workflow run with what its jobs said."""

    run_id: int
    name: str
    head_sha: str
    head_branch: str
    url: str
    jobs: Sequence[FailedJob]


@dataclass(frozen=True)
class BranchHead:
    name: str
    sha: str


Conclusion = Literal["success", "failure", "neutral", "cancelled"]
Permission = Literal["admin", "maintain", "write", "triage", "read", "none"]


@dataclass(frozen=True)
class Annotation:
    """A remark on one line of a file, which GitHub shows beside it."""

    path: str
    line: int
    message: str


@dataclass(frozen=True)
class CheckRunContent:
    """A check run's face. `conclusion` None: it is still running."""

    title: str
    summary: str
    conclusion: Conclusion | None
    name: str = "acrouter"
    """Tells checks of different kinds apart."""
    annotations: Sequence[Annotation] = ()


@dataclass(frozen=True)
class CheckRunInfo:
    """A check run that is there."""

    id: int
    external_id: str


StateLabel = Literal["working", "review", "merged", "failed", "none"]


class Forge(Protocol):
    """GitHub, or a double of it.

    Every method raises ForgeTemporary where waiting helps, TargetGone where the thing is not there, and ForgeError for
    any other refusal.
    """

    def login(self) -> str:
        """Return our own login, as comments and events show it."""
        ...

    def is_suspended(self, installation_id: int) -> bool:
        """Return whether an installation's owner has suspended it, so that the App may do nothing there."""
        ...

    def issue(self, repository: RepositoryRef, number: int) -> IssueInfo: ...

    def pull_request(self, repository: RepositoryRef, number: int) -> PullRequestInfo: ...

    def pull_request_changes(self, repository: RepositoryRef, number: int) -> Sequence[FileChange]:
        """Return what a PR does to files, the first few hundred of them."""
        ...

    def commit_changes(self, repository: RepositoryRef, sha: str) -> Sequence[FileChange]:
        """Return what a commit does to files, beside its first parent; the first few hundred of them."""
        ...

    def changes_since(self, repository: RepositoryRef, base_ref: str, sha: str) -> Sequence[FileChange]:
        """Return what was done to files up to a commit since it left a branch; the first few hundred of them."""
        ...

    def merged_as(self, repository: RepositoryRef, base_ref: str, shas: Collection[str]) -> Sequence[PullRequestInfo]:
        """Return the PRs that came into a branch lately by one of these commits: merge, squash, or a rebase's last."""
        ...

    def pull_request_discussion(self, repository: RepositoryRef, number: int, *, sha: str, asked_at: datetime) -> str:
        """Return the diff's file list, reviews, review comments and failing checks of a PR as text for the task.

        All of it as it stood at commit `sha` and moment `asked_at`: what was said or pushed later nobody asked for.
        """
        ...

    def ci_failure(self, repository: RepositoryRef, run_id: int) -> CiFailure: ...

    def failed_run_of_suite(self, repository: RepositoryRef, suite_id: int) -> int | None:
        """Return the failed workflow run of a check suite, or None where the suite is another service's."""
        ...

    def rerun_failed_jobs(self, repository: RepositoryRef, run_id: int) -> bool:
        """Have the failed jobs of a run's first attempt run once more.

        Returns whether a second attempt is under way; False where there has been one, or where the App may not.
        """
        ...

    def failing_jobs(self, repository: RepositoryRef, run_id: int, branch: str) -> frozenset[str]:
        """Return the names of the jobs that fail in the newest run of the same workflow on another branch."""
        ...

    def default_branch(self, repository: RepositoryRef) -> BranchHead: ...

    def branch_head(self, repository: RepositoryRef, name: str) -> BranchHead | None:
        """Return a branch, under its new name where it was renamed, or None where there is none."""
        ...

    def file_text(self, repository: RepositoryRef, path: str, ref: str) -> str | None:
        """Return a file's text at a ref (empty ref: the default branch), or None where there is none."""
        ...

    def permission(self, repository: RepositoryRef, login: str) -> Permission:
        """Return what a person may do in the repository right now."""
        ...

    def is_team_member(self, repository: RepositoryRef, team: str, login: str) -> bool:
        """Return whether a person is in a team (by its slug) of the organisation that owns the repository.

        Raises:
            ForgeError: the App may not read the organisation's members.
        """
        ...

    def git_remote(self, repository: RepositoryRef, *, write: bool) -> GitRemote:
        """Return where to fetch or push, with a token minted now and scoped to this one repository."""
        ...

    def author(self, repository: RepositoryRef) -> Author:
        """Return the App's bot user, as whom commits are made in a repository."""
        ...

    def upsert_status_comment(
        self, repository: RepositoryRef, number: int, marker: str, body: str, known_id: int | None
    ) -> int:
        """Write or edit the one comment of ours that carries `marker`, and return its id."""
        ...

    def upsert_check_run(
        self, repository: RepositoryRef, head_sha: str, external_id: str, content: CheckRunContent, known_id: int | None
    ) -> int: ...

    def check_runs_of_suite(self, repository: RepositoryRef, suite_id: int) -> Sequence[CheckRunInfo]:
        """Return the check runs of a suite, a hundred at the most."""
        ...

    def find_pull_request(self, repository: RepositoryRef, head_ref: str) -> PullRequestInfo | None:
        """Return the newest PR, open or not, from a branch of the repository itself."""
        ...

    def create_pull_request(
        self, repository: RepositoryRef, *, head_ref: str, base_ref: str, title: str, body: str, draft: bool
    ) -> PullRequestInfo:
        """Open a PR, or return the one that is open from this branch. Falls back to an ordinary PR where drafts are
        refused."""
        ...

    def request_reviews(
        self, repository: RepositoryRef, number: int, people: Sequence[str], teams: Sequence[str]
    ) -> None:
        """Ask for reviews of a PR; who is asked already is not asked twice."""
        ...

    def propose_file(
        self, repository: RepositoryRef, *, branch: str, path: str, text: str, title: str, body: str
    ) -> PullRequestInfo:
        """Open a PR from `branch` that puts one file on the default branch, or return the one that is open from it."""
        ...

    def set_state_label(self, repository: RepositoryRef, number: int, state: StateLabel, trigger: str) -> None:
        """Make the target's labels follow the task's state; on an ending the label `trigger` goes too."""
        ...

    def reply(self, repository: RepositoryRef, number: int, marker: str, body: str) -> None:
        """Answer a command with a comment of its own, once for each marker."""
        ...

    def open_issue(self, repository: RepositoryRef, marker: str, title: str, body: str) -> int:
        """Open an issue, once for each marker, and return its number."""
        ...


class Queue(Protocol):
    """Wakes a worker. Losing a message loses no work: the database is the truth and the reconciler looks there."""

    def deliver(self, delivery_id: int) -> None: ...

    def work(self, task_id: int) -> None: ...


class DeliveryHandler(Protocol):
    def __call__(self, delivery_id: int) -> None:
        """Turn a stored delivery into what it asks for, exactly once."""
        ...
