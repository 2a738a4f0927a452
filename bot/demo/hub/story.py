"""What people do on GitHub, as a story tells it: the same verbs on the demo's GitHub and on the tests' one."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

from bot.demo.hub.state import Permission

Json = dict[str, Any]
ReviewState = Literal["APPROVED", "CHANGES_REQUESTED", "COMMENTED"]


class Story(Protocol):
    """Everything that a person does sends the webhooks that GitHub sends.

    `repository` is a full name; where it is left out the first repository is meant. What is looked at comes back in
    the shapes of GitHub's API.
    """

    base_url: str

    def create_repository(self, full_name: str, from_git: Path) -> None:
        """Host a bare copy of a git repository."""
        ...

    def set_permission(self, login: str, permission: Permission, *, repository: str = "") -> None: ...

    def open_issue(self, title: str, body: str = "", *, by: str = "maintainer", repository: str = "") -> int: ...

    def close_issue(self, number: int, *, by: str = "maintainer", repository: str = "") -> None: ...

    def label(self, number: int, name: str, *, by: str = "maintainer", repository: str = "") -> None: ...

    def unlabel(self, number: int, name: str, *, by: str = "maintainer", repository: str = "") -> None: ...

    def comment(self, number: int, body: str, *, by: str = "maintainer", repository: str = "") -> int: ...

    def push(
        self,
        branch: str,
        files: Mapping[str, str | bytes | None],
        *,
        message: str = "Change files",
        by: str = "maintainer",
        repository: str = "",
    ) -> str:
        """Commit texts (None: the file goes) on a branch, a new one from the default branch, and return the commit."""
        ...

    def open_pull_request(
        self, title: str, *, head: str, base: str = "", body: str = "", by: str = "maintainer", repository: str = ""
    ) -> int: ...

    def merge(self, number: int, *, by: str = "maintainer", repository: str = "") -> str:
        """Merge a pull request, in the repository too, and return the merge commit."""
        ...

    def close(self, number: int, *, by: str = "maintainer", repository: str = "") -> None:
        """Close a pull request without merging it."""
        ...

    def review(
        self, number: int, state: ReviewState, *, by: str = "maintainer", body: str = "", repository: str = ""
    ) -> None: ...

    def fail_ci(
        self,
        head_sha: str,
        branch: str | None,
        *,
        workflow: str = "ci",
        jobs: Sequence[tuple[str, str | bytes]] = (("test", "FAILED\n"),),
        repository: str = "",
    ) -> int:
        """Let a workflow run fail with these jobs and logs, and return the run's id. Branch None: a fork's."""
        ...

    def pass_ci(self, head_sha: str, branch: str | None, *, workflow: str = "ci", repository: str = "") -> int: ...

    def issue(self, number: int, *, repository: str = "") -> Json: ...

    def comments(self, number: int, *, repository: str = "") -> list[Json]: ...

    def labels(self, number: int, *, repository: str = "") -> set[str]: ...

    def pull_requests(self, *, repository: str = "") -> list[Json]:
        """Return all pull requests, open or not, oldest first."""
        ...

    def check_runs(self, sha: str, *, repository: str = "") -> list[Json]: ...

    def branches(self, *, repository: str = "") -> dict[str, str]: ...
