"""Events handled against a forge in memory: fast stories about who may start what, and what is said."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, cast

from sqlmodel import col, select

from bot.events import (
    CheckRunRerequested,
    CheckSuiteRerequested,
    CommentCreated,
    Commit,
    Event,
    IssueLabeled,
    Pushed,
    RepositoryFact,
    Sender,
    WorkflowRunCompleted,
)
from bot.handle import dispatch
from store.database import Database
from store.repo_config import CONFIG_FILE
from store.states import TaskState
from store.tables import Task
from tests.support.forge import MemoryForge, make_runtime
from tests.support.rows import add_repository, settings
from workers.errors import TargetGone
from workers.ports import (
    BranchHead,
    CheckRunInfo,
    CiFailure,
    FailedJob,
    IssueInfo,
    Permission,
    PullRequestInfo,
    RepositoryRef,
)
from workers.runtime import Runtime

REPOSITORY = RepositoryFact(42, "octo/tools", "main", False, 7)
NOW = datetime(2026, 1, 1, tzinfo=UTC)
APP_ID = 77


@dataclass
class StoryForge(MemoryForge):
    """A MemoryForge that also answers what handlers ask."""

    files: dict[tuple[str, str], str] = field(default_factory=dict)
    """Texts by repository and ref (empty: the default branch), of `.acrouter.yml` alone."""
    roles: dict[str, Permission] = field(default_factory=lambda: {"maintainer": "write"})
    teams: dict[str, set[str]] = field(default_factory=dict)
    replies: dict[int, dict[str, str]] = field(default_factory=dict)
    heads: dict[str, str] = field(default_factory=lambda: {"main": "a" * 40})
    closed: set[int] = field(default_factory=set)
    """Issues and PRs that are not open."""
    issue_labels: dict[int, tuple[str, ...]] = field(default_factory=dict)
    issues: dict[int, PullRequestInfo] = field(default_factory=dict)
    """PRs by number."""
    proposals: list[dict[str, Any]] = field(default_factory=list)
    proposed: dict[tuple[str, str], PullRequestInfo] = field(default_factory=dict)
    suites: dict[int, list[CheckRunInfo]] = field(default_factory=dict)
    failed_runs: dict[int, CiFailure] = field(default_factory=dict)
    run_attempts: dict[int, int] = field(default_factory=dict)
    may_rerun: bool = True
    failing: dict[str, frozenset[str]] = field(default_factory=dict)
    """Names of the jobs that fail on a branch."""

    def login(self) -> str:
        return "acrouter[bot]"

    def file_text(self, repository: RepositoryRef, path: str, ref: str) -> str | None:
        self._enter("file_text")
        assert path == CONFIG_FILE
        return self.files.get((repository.full_name, ref))

    def permission(self, repository: RepositoryRef, login: str) -> Permission:
        self._enter("permission")
        return self.roles.get(login, "read")

    def is_team_member(self, repository: RepositoryRef, team: str, login: str) -> bool:
        self._enter("is_team_member")
        return login in self.teams.get(team, set())

    def reply(self, repository: RepositoryRef, number: int, marker: str, body: str) -> None:
        self._enter("reply")
        self.replies.setdefault(number, {}).setdefault(marker, body)

    def branch_head(self, repository: RepositoryRef, name: str) -> BranchHead | None:
        sha = self.heads.get(name)
        return BranchHead(name, sha) if sha else None

    def issue(self, repository: RepositoryRef, number: int) -> IssueInfo:
        self._enter("issue")
        state: Literal["open", "closed"] = "closed" if number in self.closed else "open"
        return IssueInfo(number, "The total is wrong", "", state, "ada", self.issue_labels.get(number, ()))

    def default_branch(self, repository: RepositoryRef) -> BranchHead:
        return BranchHead("main", self.heads["main"])

    def pull_request(self, repository: RepositoryRef, number: int) -> PullRequestInfo:
        self._enter("pull_request")
        if number not in self.issues:
            raise TargetGone(f"there is no PR {number}")
        return self.issues[number]

    def propose_file(self, repository: RepositoryRef, **values: Any) -> PullRequestInfo:
        self._enter("propose_file")
        self.proposals.append({"repository": repository.full_name, **values})
        pull = PullRequestInfo(
            number=99,
            title=values["title"],
            body=values["body"],
            state="open",
            merged=False,
            head_ref=values["branch"],
            head_sha="c" * 40,
            head_repository=repository.full_name,
            base_repository=repository.full_name,
            base_ref="main",
            url="https://github.example/octo/tools/pull/99",
        )
        self.proposed[repository.full_name, values["branch"]] = pull
        return pull

    def find_pull_request(self, repository: RepositoryRef, head_ref: str) -> PullRequestInfo | None:
        return self.proposed.get((repository.full_name, head_ref)) or super().find_pull_request(repository, head_ref)

    def ci_failure(self, repository: RepositoryRef, run_id: int) -> CiFailure:
        return self.failed_runs[run_id]

    def check_runs_of_suite(self, repository: RepositoryRef, suite_id: int) -> list[CheckRunInfo]:
        self._enter("check_runs_of_suite")
        return self.suites.get(suite_id, [])

    def rerun_failed_jobs(self, repository: RepositoryRef, run_id: int) -> bool:
        self._enter("rerun_failed_jobs")
        if not self.may_rerun or self.run_attempts.get(run_id, 1) > 1:
            return False
        self.run_attempts[run_id] = self.run_attempts.get(run_id, 1) + 1
        return True

    def failing_jobs(self, repository: RepositoryRef, run_id: int, branch: str) -> frozenset[str]:
        self._enter("failing_jobs")
        return self.failing.get(branch, frozenset())


class Story:
    """acrouter in `octo/tools`, with nobody at work on its tasks."""

    def __init__(self, database: Database, **changes: Any) -> None:
        self.database = database
        self.forge = StoryForge()
        options: dict[str, Any] = {"github_app_id": APP_ID} | changes
        self.runtime: Runtime = make_runtime(database, settings(**options), cast("MemoryForge", self.forge))
        self._guids = 0
        add_repository(database)

    def configure(self, text: str | None, repository: str = "octo/tools") -> None:
        """Put `.acrouter.yml` on the default branch, or take it away."""
        self.forge.files.pop((repository, ""), None)
        if text is not None:
            self.forge.files[repository, ""] = text

    def tell(self, event: Event) -> str | None:
        """Let an event be handled; returns None or why nothing was done."""
        self._guids += 1
        return dispatch(self.runtime, f"guid-{self._guids}", event)

    def comment(self, body: str, by: str = "maintainer", number: int = 1, **changes: Any) -> str | None:
        values: dict[str, Any] = {
            "repository": REPOSITORY,
            "sender": Sender(by, is_bot=by.endswith("[bot]")),
            "number": number,
            "is_pull_request": number in self.forge.issues,
            "is_open": True,
            "title": "The total is wrong",
            "issue_body": "It leaves the first price out.",
            "comment_id": 1000 + self._guids,
            "body": body,
            "author_association": "NONE",
            "at": NOW,
        }
        return self.tell(CommentCreated(**(values | changes)))

    def label(
        self, label: str = "acrouter", by: str = "maintainer", number: int = 1, *, is_open: bool = True
    ) -> str | None:
        sender = Sender(by, is_bot=by.endswith("[bot]"))
        return self.tell(IssueLabeled(REPOSITORY, sender, number, "The total is wrong", "", label, is_open=is_open))

    def push(self, branch: str, *paths: str, sha: str = "b" * 40, by: str = "maintainer") -> str | None:
        commits = (Commit(sha, "Change", frozenset(paths)),)
        return self.tell(Pushed(REPOSITORY, Sender(by, False), branch, "a" * 40, sha, commits, NOW))

    def rerun_check(
        self, external_id: str, by: str = "maintainer", app_id: int = APP_ID, *, run_id: int = 5, at: str = "noon"
    ) -> str | None:
        sender = Sender(by, is_bot=False)
        return self.tell(CheckRunRerequested(REPOSITORY, sender, run_id, app_id, external_id, "b" * 40, at))

    def ci_fails(
        self,
        run_id: int = 500,
        branch: str = "feature",
        *,
        attempt: int = 1,
        jobs: Collection[str] = ("test",),
        of_repository: int = REPOSITORY.id,
    ) -> str | None:
        sha = self.forge.heads.setdefault(branch, "d" * 40)
        failed = [FailedJob(name, ["pytest"], "FAILED") for name in jobs]
        self.forge.failed_runs[run_id] = CiFailure(run_id, "ci", sha, branch, "https://github.example/run", failed)
        self.forge.run_attempts.setdefault(run_id, attempt)
        return self.tell(
            WorkflowRunCompleted(
                repository=REPOSITORY,
                sender=Sender("maintainer", False),
                run_id=run_id,
                run_attempt=attempt,
                name="ci",
                trigger="push",
                conclusion="failure",
                head_branch=branch,
                head_sha=sha,
                head_repository_id=of_repository,
                at=NOW,
            )
        )

    def rerun_all_checks(
        self, *external_ids: str, by: str = "maintainer", app_id: int = APP_ID, at: str = "x"
    ) -> str | None:
        """Press the button that runs all checks of an App again; theirs are these."""
        self.forge.suites[6] = [CheckRunInfo(number, one) for number, one in enumerate(external_ids, start=1)]
        sender = Sender(by, is_bot=False)
        return self.tell(CheckSuiteRerequested(REPOSITORY, sender, 6, app_id, "b" * 40, at))

    def tasks(self) -> list[Task]:
        with self.database.session() as session:
            return list(session.exec(select(Task).order_by(col(Task.id))).all())

    def end(self, task: Task, state: TaskState = TaskState.NO_FIX) -> None:
        with self.database.session() as session:
            session.add(session.get_one(Task, task.id).sqlmodel_update({"state": state}))

    def words(self, number: int = 1) -> str:
        """Everything that was answered on an issue or a PR."""
        return "\n".join(self.forge.replies.get(number, {}).values())


MakeStory = Callable[..., Story]
