"""GitHub as the workers' Forge. Each method is one concern's function with errors translated and a token at hand."""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime

from github.Repository import Repository

from bot.errors import CredentialsRefused, Moved
from bot.github import checks, ci, contents, hook_deliveries, issues, proposals, pulls
from bot.github.client import FETCH, MEMBERS, PROPOSE, PUSH, RERUN, Clients
from bot.github.failures import translated
from bot.github.hook_deliveries import Missed
from sandbox.remotes import Author, GitRemote
from store.settings import Settings
from workers.errors import ForgeError, ForgeTemporary, TargetGone
from workers.ports import (
    BranchHead,
    CheckRunContent,
    CheckRunInfo,
    CiFailure,
    FileChange,
    IssueInfo,
    Permission,
    PullRequestInfo,
    RepositoryRef,
    StateLabel,
)


class GitHubForge:
    """Fulfils `workers.ports.Forge` with the App's credentials. May be used by several threads."""

    def __init__(self, settings: Settings) -> None:
        """Read the credentials; nothing is asked of GitHub yet.

        Raises:
            ConfigurationError: they are missing or cannot be read.
        """
        self._settings = settings
        self._clients = Clients(settings)

    def login(self) -> str:
        return self._clients.login()

    def author(self, repository: RepositoryRef) -> Author:
        with self._open(repository, "read the App's bot user to commit") as opened:
            return self._clients.author(opened)

    def is_suspended(self, installation_id: int) -> bool:
        path = f"/app/installations/{installation_id}"
        return self._clients.as_app("GET", path, f"read installation {installation_id}").get("suspended_at") is not None

    def issue(self, repository: RepositoryRef, number: int) -> IssueInfo:
        with self._open(repository, f"read issue {number}") as opened:
            return issues.read_issue(opened, number)

    def pull_request(self, repository: RepositoryRef, number: int) -> PullRequestInfo:
        with self._open(repository, f"read PR {number}") as opened:
            return pulls.read_pull(opened, number)

    def pull_request_changes(self, repository: RepositoryRef, number: int) -> Sequence[FileChange]:
        with self._open(repository, f"read the files of PR {number}") as opened:
            return pulls.read_changes(opened, number)

    def commit_changes(self, repository: RepositoryRef, sha: str) -> Sequence[FileChange]:
        with self._open(repository, f"read commit {sha[:12]}") as opened:
            return contents.read_commit_changes(opened, sha)

    def changes_since(self, repository: RepositoryRef, base_ref: str, sha: str) -> Sequence[FileChange]:
        with self._open(repository, f"compare {sha[:12]} with {base_ref}") as opened:
            return contents.read_changes_since(opened, base_ref, sha)

    def merged_as(self, repository: RepositoryRef, base_ref: str, shas: Collection[str]) -> Sequence[PullRequestInfo]:
        with self._open(repository, f"look for PRs that were merged to {base_ref}") as opened:
            return pulls.merged_as(opened, base_ref, shas)

    def pull_request_discussion(self, repository: RepositoryRef, number: int, *, sha: str, asked_at: datetime) -> str:
        with self._open(repository, f"read the discussion of PR {number}") as opened:
            return pulls.read_discussion(opened, number, sha, asked_at)

    def ci_failure(self, repository: RepositoryRef, run_id: int) -> CiFailure:
        with self._open(repository, f"read workflow run {run_id}") as opened:
            return ci.read_failure(opened, run_id)

    def failed_run_of_suite(self, repository: RepositoryRef, suite_id: int) -> int | None:
        with self._open(repository, f"read the workflow runs of check suite {suite_id}") as opened:
            return ci.failed_run_of_suite(opened, suite_id)

    def rerun_failed_jobs(self, repository: RepositoryRef, run_id: int) -> bool:
        with self._open(repository, f"read workflow run {run_id}") as opened:
            if (under_way := ci.second_attempt(opened, run_id)) is not None:
                return under_way
        try:
            with self._clients.opened(repository, RERUN) as opened, translated(f"run {run_id} once more"):
                ci.rerun_failed_jobs(opened, run_id)
        except ForgeTemporary:
            raise
        except ForgeError:  # the App may only read Actions, which is enough for all else
            return False
        return True

    def failing_jobs(self, repository: RepositoryRef, run_id: int, branch: str) -> frozenset[str]:
        with self._open(repository, f"read the workflow runs of {branch}") as opened:
            return ci.failing_jobs(opened, run_id, branch)

    def default_branch(self, repository: RepositoryRef) -> BranchHead:
        with self._open(repository, "read the default branch") as opened:
            return contents.read_default_branch(opened)

    def branch_head(self, repository: RepositoryRef, name: str) -> BranchHead | None:
        with self._open(repository, f"read branch {name}") as opened:
            return contents.read_branch(opened, name)

    def file_text(self, repository: RepositoryRef, path: str, ref: str) -> str | None:
        with self._open(repository, f"read {path}") as opened:
            return contents.read_file(opened, path, ref)

    def permission(self, repository: RepositoryRef, login: str) -> Permission:
        with self._open(repository, f"read the permission of {login}") as opened:
            return contents.read_permission(opened, login)

    def is_team_member(self, repository: RepositoryRef, team: str, login: str) -> bool:
        with self._clients.opened(repository, MEMBERS) as opened, translated(f"ask who is in the team {team}"):
            return contents.is_team_member(opened, opened.full_name.split("/", 1)[0], team, login)

    def git_remote(self, repository: RepositoryRef, *, write: bool) -> GitRemote:
        token = self._clients.mint(repository, PUSH if write else FETCH)
        url = f"{self._settings.github_web_url.rstrip('/')}/{token.full_name}.git"
        return GitRemote(url=url, token=token.value)

    def upsert_status_comment(
        self, repository: RepositoryRef, number: int, marker: str, body: str, known_id: int | None
    ) -> int:
        with self._open(repository, f"write the status comment on {number}") as opened:
            return issues.upsert_comment(opened, number, marker, body, known_id=known_id, login=self.login)

    def upsert_check_run(
        self, repository: RepositoryRef, head_sha: str, external_id: str, content: CheckRunContent, known_id: int | None
    ) -> int:
        with self._open(repository, f"write the check run on {head_sha[:12]}") as opened:
            return checks.upsert_check(opened, head_sha, external_id, content, known_id)

    def check_runs_of_suite(self, repository: RepositoryRef, suite_id: int) -> Sequence[CheckRunInfo]:
        with self._open(repository, f"read the checks of suite {suite_id}") as opened:
            return checks.read_suite(opened, suite_id)

    def find_pull_request(self, repository: RepositoryRef, head_ref: str) -> PullRequestInfo | None:
        with self._open(repository, f"look for a PR from {head_ref}") as opened:
            return pulls.find_pull(opened, head_ref)

    def create_pull_request(
        self, repository: RepositoryRef, *, head_ref: str, base_ref: str, title: str, body: str, draft: bool
    ) -> PullRequestInfo:
        with self._open(repository, f"open a PR from {head_ref}") as opened:
            return pulls.create_pull(
                opened,
                head_ref=head_ref,
                base_ref=base_ref,
                title=title,
                body=body,
                draft=draft,
            )

    def request_reviews(
        self, repository: RepositoryRef, number: int, people: Sequence[str], teams: Sequence[str]
    ) -> None:
        with self._open(repository, f"ask for reviews of PR {number}") as opened:
            pulls.request_reviews(opened, number, people, teams)

    def propose_file(
        self, repository: RepositoryRef, *, branch: str, path: str, text: str, title: str, body: str
    ) -> PullRequestInfo:
        action = f"propose {path} in {repository.full_name}"
        with self._clients.opened(repository, PROPOSE) as opened, translated(action):
            return proposals.propose_file(opened, branch=branch, path=path, text=text, title=title, body=body)

    def missed_deliveries(self, since: datetime, known: Callable[[Collection[str]], set[str]]) -> Iterator[Missed]:
        return hook_deliveries.missed(self._clients, since, known)

    def set_state_label(self, repository: RepositoryRef, number: int, state: StateLabel, trigger: str) -> None:
        with self._open(repository, f"set the labels of {number}") as opened:
            issues.set_state_label(opened, number, state, trigger)

    def reply(self, repository: RepositoryRef, number: int, marker: str, body: str) -> None:
        with self._open(repository, f"comment on {number}") as opened:
            issues.reply_once(opened, number, marker, body, self.login)

    def open_issue(self, repository: RepositoryRef, marker: str, title: str, body: str) -> int:
        with self._open(repository, "open an issue") as opened:
            return issues.open_once(opened, marker, title, body, self.login)

    @contextmanager
    def _open(self, repository: RepositoryRef, action: str) -> Iterator[Repository]:
        """Yield a client of the repository. A token that GitHub refuses is not used again."""
        opened = self._clients.repository(repository)
        try:
            with translated(f"{action} in {repository.full_name}"):
                yield opened
        except CredentialsRefused:
            # The next try, which the queue makes, mints another one.
            self._clients.forget_token(repository)
            raise
        except (Moved, TargetGone) as error:
            # It may have another name by now, which the next token tells; and the old one may be another's.
            self._clients.forget_token(repository)
            if isinstance(error, Moved) and _is_elsewhere(error.address, repository):
                raise TargetGone(f"GitHub could not {action}: it was moved to another repository.") from None
            raise


def _is_elsewhere(address: str, repository: RepositoryRef) -> bool:
    """Whether GitHub's address of what was moved is in another repository, as that of a transferred issue is."""
    found = re.search(r"/repositories/(\d+)(?=[/?]|$)", address)
    return found is not None and int(found[1]) != repository.id
