"""Tasks from GitHub: reads their words and their commit, and hands the answer in as a PR."""

from collections.abc import Sequence
from dataclasses import dataclass

from sandbox.checkout import Mirror
from sandbox.errors import PushError
from store.repo_config import CONFIG_FILE, RepositoryConfig
from store.repo_yaml import RepositoryConfigurationError
from store.scrub import scrub
from store.states import OutcomeKind, TaskKind, TaskState
from store.tables import Task
from templates import render
from workers import outcomes
from workers.attempts import Attempted
from workers.configuration import in_force
from workers.context import Work
from workers.errors import PipelineError
from workers.history import record
from workers.ports import CiFailure, Forge, IssueInfo, PullRequestInfo, RepositoryRef
from workers.run import Run
from workers.targets import Refusal, Source, TargetClosed
from workers.views import task_view

BRANCH_PREFIX = "acrouter/"


@dataclass(frozen=True)
class ForgeTarget:
    """An issue, a PR or a failed CI run at the forge."""

    forge: Forge
    repository: RepositoryRef

    def fetch(self, run: Run) -> Source:
        task = run.task()
        config = self._config(run)
        title, text, base_ref, base_sha, link = self._words(task)
        mirror = Mirror(run.runtime.mirrors_dir / f"{self.repository.id}.git")
        if not mirror.has(base_sha):
            mirror.fetch(
                self.forge.git_remote(self.repository, write=False),
                refs_to_fetch(base_ref, base_sha),
                timeout_s=run.runtime.settings.setup_timeout_s,
            )
        budget = min(task.budget_usd, config.budget_usd or task.budget_usd)
        # A secret that somebody pasted goes to no model and into no memory; and Postgres takes no NUL.
        title, text = scrub(title.replace("\x00", "")), scrub(text.replace("\x00", ""))
        run.update(title=title, text=text, base_ref=base_ref, base_sha=base_sha, budget_usd=budget)
        return Source(self.repository.full_name, title, text, base_ref, base_sha, mirror, link, config)

    def adopt(self, run: Run) -> bool:
        task = run.task()
        if not task.head_sha:  # nothing was pushed
            return False
        pull = self.forge.find_pull_request(self.repository, task.branch)
        if pull is None:
            return False
        self._record(run, pull)
        return True

    def publish(self, run: Run, work: Work, best: Attempted) -> None:
        """Push the patch to a branch of its own and open a PR. Each step looks before it writes."""
        task = run.task()
        self._require_open(task)
        assert best.result is not None
        assert best.attempt.id is not None
        branch = task.branch or branch_name(task)
        run.update(branch=branch, published_attempt_id=best.attempt.id)
        run.advance(TaskState.PUBLISHING, f"Opening a PR from {branch}.", branch=branch)
        commit = self._commit(run, work, best)
        run.check()
        self._push(work.source.mirror, commit, branch)
        run.update(head_sha=commit)
        run.check()
        view = task_view(run.runtime.database, run.task_id, run.runtime.settings, run.runtime.pool)
        pull = self.forge.create_pull_request(
            self.repository,
            head_ref=branch,
            base_ref=work.source.base_ref,
            title=render("pulls/title.txt.j2", view=view).strip(),
            body=render("pulls/body.md.j2", view=view),
            draft=work.source.config.draft or not best.verified,
        )
        self._record(run, pull)

    def _record(self, run: Run, pull: PullRequestInfo) -> None:
        with run.lease.transaction() as (session, task):
            task.pr_number = pull.number
            task.pr_url = pull.url
            # GitHub told of its end, or tells now: either may be the first to know.
            told = outcomes.kinds(session, run.task_id)
            state, words = published_state(
                pull.number,
                merged=pull.merged or OutcomeKind.MERGED in told,
                closed=pull.state == "closed" or OutcomeKind.CLOSED in told,
            )
            record(session, task, state, words, pr=pull.number, url=pull.url)
        if pull.state == "closed":  # its webhook may have come before the PR's number was known
            outcomes.record_end(run.runtime.database, run.task_id, pull)

    def _require_open(self, task: Task) -> None:
        """The target may have been closed while the models worked, without our being told."""
        match task.kind:
            case TaskKind.ISSUE:
                self._open_issue(task)
            case TaskKind.PULL_REQUEST:
                self._open_pull_request(task)
            case _:
                pass

    def _commit(self, run: Run, work: Work, best: Attempted) -> str:
        """The same attempt gives the same commit, whoever makes it."""
        tree = work.source.mirror.tree_with_patch(work.source.base_sha, best.attempt.patch)
        when = best.attempt.finished_at or best.attempt.started_at
        view = task_view(run.runtime.database, run.task_id, run.runtime.settings, run.runtime.pool)
        message = render("pulls/commit.txt.j2", view=view)
        return work.source.mirror.commit(tree, work.source.base_sha, message, self.forge.author(), when)

    def _push(self, mirror: Mirror, commit: str, branch: str) -> None:
        remote = self.forge.git_remote(self.repository, write=True)  # minted now: an older token may be dead
        there = mirror.remote_head(remote, branch)
        if there == commit:
            return
        if there is not None:
            raise PushError(f"The branch {branch} is there already, with commits that are not acrouter's.")
        mirror.push(remote, commit, branch, expected=None)

    def _config(self, run: Run) -> RepositoryConfig:
        try:
            rules = in_force(run.runtime.database, self.forge, self.repository, run.runtime.settings)
        except RepositoryConfigurationError as error:
            raise Refusal(f"{CONFIG_FILE} on the default branch has a mistake:\n{error}") from error
        if rules.mistakes:
            told = "\n".join(map(str, rules.mistakes))
            run.note(f"{CONFIG_FILE} has a mistake; the last valid one stays in force.\n{told}")
        return rules.config

    def _words(self, task: Task) -> tuple[str, str, str, str, str]:
        match task.kind:
            case TaskKind.ISSUE:
                return self._issue(task)
            case TaskKind.PULL_REQUEST:
                return self._pull_request(task)
            case TaskKind.CI_FAILURE:
                return self._ci(task)
            case TaskKind.LOCAL:
                raise PipelineError("A local task has no target on a forge.")

    def _open_issue(self, task: Task) -> IssueInfo:
        assert task.target_number is not None
        issue = self.forge.issue(self.repository, task.target_number)
        if issue.state == "closed":
            raise TargetClosed(f"Issue {issue.number} was closed.")
        return issue

    def _open_pull_request(self, task: Task) -> PullRequestInfo:
        assert task.target_number is not None
        pull = self.forge.pull_request(self.repository, task.target_number)
        if pull.state == "closed":
            raise TargetClosed(f"PR {pull.number} was {'merged' if pull.merged else 'closed'}.")
        return pull

    def _issue(self, task: Task) -> tuple[str, str, str, str, str]:
        issue = self._open_issue(task)
        branch = self.forge.default_branch(self.repository)
        # A pinned commit stays: the second run of a task works on what the first one saw.
        sha = task.base_sha or branch.sha
        title, text = words_asked_for(task, issue)
        return title, text, branch.name, sha, f"{self.repository.full_name}#{issue.number}"

    def _pull_request(self, task: Task) -> tuple[str, str, str, str, str]:
        pull = self._open_pull_request(task)
        if pull.is_fork_of(self.repository.full_name):
            raise Refusal(
                "This PR comes from a fork. acrouter works on branches of the repository itself, because it may not "
                "push to a fork."
            )
        discussion = self.forge.pull_request_discussion(self.repository, pull.number)
        text = render("prompts/pull_request.md.j2", pull=pull, discussion=discussion)
        sha = task.base_sha or pull.head_sha
        return pull.title, text, pull.head_ref, sha, f"{self.repository.full_name}#{pull.number}"

    def _ci(self, task: Task) -> tuple[str, str, str, str, str]:
        assert task.ci_run_id is not None
        failure: CiFailure = self.forge.ci_failure(self.repository, task.ci_run_id)
        text = render("prompts/ci_failure.md.j2", failure=failure)
        title = f"CI workflow {failure.name} fails on {failure.head_branch}"
        return title, text, failure.head_branch, task.base_sha or failure.head_sha, failure.url


def refs_to_fetch(base_ref: str, base_sha: str) -> Sequence[str]:
    """Return what brings `base_sha`: the branch, and the commit itself in case the branch has moved on without it."""
    return [f"refs/heads/{base_ref}", base_sha]


def words_asked_for(task: Task, issue: IssueInfo) -> tuple[str, str]:
    """Return an issue's title and text as they stood when a person with permission asked for the work.

    What its author, who may be anybody, writes into it afterwards nobody has approved.
    """
    return (task.title, task.text) if task.title else (issue.title, issue.body)


def branch_name(task: Task) -> str:
    """Return the name of a task's own branch: no two tasks share one."""
    about = f"{task.target_number}" if task.target_number is not None else "ci"
    return f"{BRANCH_PREFIX}{task.kind.value.replace('_', '-')}-{about}-task-{task.id}"


def published_state(number: int, *, merged: bool, closed: bool) -> tuple[TaskState, str]:
    """Return the state that a PR stands for: it may have been merged or closed while we were away."""
    if merged:
        return TaskState.MERGED, f"PR {number} was merged."
    if closed:
        return TaskState.CLOSED, f"PR {number} was closed without a merge."
    return TaskState.PUBLISHED, f"PR {number} is open."
