"""Pushes: somebody else's commits on our branches, and reverts on the default branch."""

from datetime import datetime
from functools import partial

from bot.events import PullRequestSynchronized, Pushed, sender_named
from bot.handlers.configuration import configuration_pushed
from bot.handlers.context import Context
from bot.handlers.reverts import may_revert, reverted, reverts_in
from bot.handlers.rules import may_write
from bot.handlers.taking_back import is_same_work
from bot.handlers.tasks import tasks_of_branch
from store.states import OutcomeKind
from store.tables import Task
from workers.errors import TargetGone
from workers.forge_target import BRANCH_PREFIX

_MOST_READ = 40
"""Messages of one push that are read as Markdown, the newest ones."""
_MOST_REVERTING = 20
"""Commits of one push that are looked at."""


def pushed(context: Context, event: Pushed) -> str | None:
    """Handle new commits on a branch."""
    if event.branch.startswith(BRANCH_PREFIX):
        return _foreign(context, event.branch, event.after, event.sender.login, event.at)
    checked = configuration_pushed(context, event)
    if event.branch != event.repository.default_branch:
        return checked and "a push to another branch"
    return None if _reverting(context, event) or checked is None else "nothing of acrouter's was reverted"


def _reverting(context: Context, event: Pushed) -> bool:
    """Whether commits take our work back. Only those who may push bring them in, but a PR's can be a stranger's."""
    read = [commit for commit in event.commits if may_revert(commit.message)][-_MOST_READ:]
    named = [(commit.sha, reverts_in(commit.message, context.repository.full_name)) for commit in read]
    named = [(sha, reverts) for sha, reverts in named if reverts][:_MOST_REVERTING]
    if not named:
        return False
    shas = frozenset(commit.sha for commit in event.commits) | {event.after}
    pulls = context.forge.merged_as(context.repository, event.branch, shas)
    if not all(may_write(context, sender_named(pull.author)) for pull in pulls):
        return False
    found = [
        reverted(
            context, reverts, partial(context.forge.commit_changes, context.repository, sha), event.at, event.after
        )
        for sha, reverts in named
    ]
    return any(found)


def pull_request_synchronized(context: Context, event: PullRequestSynchronized) -> str | None:
    """Handle a moved head of a PR; the push that moved it may have been told already."""
    # Anybody can give a branch of a fork the name of one of ours.
    if not event.head_ref.startswith(BRANCH_PREFIX) or event.head_repository_id != context.repository.id:
        return "not a PR of acrouter's"
    return _foreign(context, event.head_ref, event.after, event.sender.login, event.at)


def _foreign(context: Context, branch: str, sha: str, login: str, at: datetime) -> str | None:
    tasks = tasks_of_branch(context, branch)
    if not tasks:
        return "no task has this branch"
    if login == context.forge.login() or any(task.head_sha == sha for task in tasks):
        return "acrouter's own push"
    for task in tasks:
        if _is_as_it_was(context, task, sha):
            continue
        data = {"by": login, "head_sha": sha}
        context.record_outcome(task, OutcomeKind.FOREIGN_COMMITS, ref=sha, at=at, data=data)
    return None


def _is_as_it_was(context: Context, task: Task, sha: str) -> bool:
    """Whether a PR does what acrouter's commit did, and nothing else: somebody brought it up to date with its base.

    GitHub's "Update branch" button merges the base into it, or makes its commits anew on top of that.
    """
    if not task.head_sha or task.pr_number is None:
        return False
    try:
        pull = context.forge.pull_request(context.repository, task.pr_number)
        ours = context.forge.commit_changes(context.repository, task.head_sha)
        return is_same_work(ours, context.forge.changes_since(context.repository, pull.base_ref, sha))
    except TargetGone:
        return False
