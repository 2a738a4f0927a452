"""What a task from GitHub is about: its words, its pinned commit, and whether its branch is the repository's own."""

from collections.abc import Sequence
from dataclasses import dataclass

from store.states import TaskKind
from store.tables import Task
from templates import render
from workers.errors import ForgeError, ForgeTemporary, PipelineError, TargetGone
from workers.ports import BranchHead, Forge, IssueInfo, PullRequestInfo, RepositoryRef
from workers.targets import TargetClosed


@dataclass(frozen=True)
class Words:
    """What a task is about, as it stood when somebody asked for it. Title and text are untrusted."""

    title: str
    text: str
    """For the model and for the router's memory."""
    asked: str
    """What of the text the task keeps for its next try, and for a task that does its work once more."""
    base_ref: str
    """The branch of the repository that an answer goes to."""
    base_sha: str
    link: str
    refs: Sequence[str]
    """What brings the commit into the mirror."""
    is_fork: bool = False
    """The commit is a stranger's: it is read and never pushed into the repository."""
    on_default_branch: bool = False
    """The commit was the default branch's when it was pinned. Of a failed run's nobody has looked."""


def read_words(forge: Forge, repository: RepositoryRef, task: Task) -> Words:
    """Read what a task is about.

    Raises:
        TargetClosed, TargetGone: there is nothing to do any more.
        ForgeTemporary, ForgeError: the forge could not tell.
    """
    match task.kind:
        case TaskKind.ISSUE:
            return _of_issue(forge, repository, task)
        case TaskKind.PULL_REQUEST:
            return _of_pull_request(forge, repository, task)
        case TaskKind.CI_FAILURE:
            return _of_run(forge, repository, task)
        case TaskKind.LOCAL:
            raise PipelineError("A local task has no target on a forge.")


def open_issue(forge: Forge, repository: RepositoryRef, number: int) -> IssueInfo:
    issue = forge.issue(repository, number)
    if issue.state == "closed":
        raise TargetClosed(f"Issue {issue.number} was closed.")
    return issue


def open_pull_request(forge: Forge, repository: RepositoryRef, number: int) -> PullRequestInfo:
    pull = forge.pull_request(repository, number)
    if pull.state == "closed":
        raise TargetClosed(f"PR {pull.number} was {'merged' if pull.merged else 'closed'}.")
    return pull


def branch_now(forge: Forge, repository: RepositoryRef, name: str) -> BranchHead:
    """Return a branch, which may have another name by now."""
    head = forge.branch_head(repository, name)
    if head is None:
        raise TargetClosed(f"The branch {name} was deleted.")
    return head


def words_asked_for(task: Task, target: IssueInfo | PullRequestInfo) -> tuple[str, str]:
    """Return an issue's or a PR's title and text as they stood when a person with permission asked for the work.

    What its author, who may be anybody, writes into it afterwards nobody has approved.
    """
    return (task.title, task.text) if task.title else (target.title, target.body)


def refs_to_fetch(base_ref: str, base_sha: str) -> Sequence[str]:
    """Return what brings `base_sha`: the branch, and the commit itself in case the branch has moved on without it."""
    return [f"refs/heads/{base_ref}", base_sha]


def _of_issue(forge: Forge, repository: RepositoryRef, task: Task) -> Words:
    assert task.target_number is not None
    issue = open_issue(forge, repository, task.target_number)
    branch = forge.default_branch(repository)
    # A pinned commit stays: the second run of a task works on what the first one saw.
    sha = task.base_sha or branch.sha
    title, text = words_asked_for(task, issue)
    link = f"{repository.full_name}#{issue.number}"
    refs = refs_to_fetch(branch.name, sha)
    return Words(title, text, text, branch.name, sha, link, refs, on_default_branch=True)


def _of_pull_request(forge: Forge, repository: RepositoryRef, task: Task) -> Words:
    assert task.target_number is not None
    pull = open_pull_request(forge, repository, task.target_number)
    sha = task.base_sha or pull.head_sha
    title, body = words_asked_for(task, pull)
    discussion = forge.pull_request_discussion(repository, pull.number, sha=sha, asked_at=task.created_at)
    text = render("prompts/pull_request.md.j2", body=body, discussion=discussion)
    link = f"{repository.full_name}#{pull.number}"
    if pull.is_fork:
        # https://docs.github.com/en/pull-requests/collaborating-with-pull-requests/reviewing-changes-in-pull-requests/checking-out-pull-requests-locally
        refs = [f"refs/pull/{pull.number}/head", sha]
        return Words(title, text, body, pull.base_ref, sha, link, refs, is_fork=True)
    return Words(title, text, body, pull.head_ref, sha, link, refs_to_fetch(pull.head_ref, sha))


def _of_run(forge: Forge, repository: RepositoryRef, task: Task) -> Words:
    assert task.ci_run_id is not None
    failure = forge.ci_failure(repository, task.ci_run_id)
    also = _failing_on_base(forge, repository, task) & {job.name for job in failure.jobs}
    text = render("prompts/ci_failure.md.j2", failure=failure, also_on_base=sorted(also))
    title = f"CI workflow {failure.name} fails on {failure.head_branch}"
    sha, base_ref = task.base_sha or failure.head_sha, failure.head_branch
    if task.target_number is None:
        base_ref = branch_now(forge, repository, base_ref).name
    return Words(title, text, text, base_ref, sha, failure.url, refs_to_fetch(base_ref, sha))


def _failing_on_base(forge: Forge, repository: RepositoryRef, task: Task) -> frozenset[str]:
    """The jobs that fail on a PR's base branch too; unknown ones are none."""
    if task.target_number is None or task.ci_run_id is None:
        return frozenset()
    try:
        pull = forge.pull_request(repository, task.target_number)
        return forge.failing_jobs(repository, task.ci_run_id, pull.base_ref)
    except ForgeTemporary:
        raise
    except (TargetGone, ForgeError):
        return frozenset()
