"""Pushes: somebody else's commits on our branches, and reverts on the default branch."""

from datetime import datetime

from bot.events import PullRequestSynchronized, Pushed
from bot.handlers.configuration import configuration_pushed
from bot.handlers.context import BRANCH_PREFIX, Context
from bot.handlers.reverts import Reverts, reverted, reverts_in
from bot.handlers.tasks import tasks_of_branch
from store.states import OutcomeKind


def pushed(context: Context, event: Pushed) -> str | None:
    """Handle new commits on a branch."""
    if event.branch.startswith(BRANCH_PREFIX):
        return _foreign(context, event.branch, event.after, event.sender.login, event.at)
    checked = configuration_pushed(context, event)
    if event.branch != event.repository.default_branch:
        return checked and "a push to another branch"
    found = [reverts_in(commit.message, context.repository.full_name) for commit in event.commits]
    reverts = Reverts(
        commits=frozenset().union(*(item.commits for item in found)),
        pulls=frozenset().union(*(item.pulls for item in found)),
    )
    found_any = reverted(context, reverts, event.at, event.after)
    return None if found_any or checked is None else "nothing of acrouter's was reverted"


def pull_request_synchronized(context: Context, event: PullRequestSynchronized) -> str | None:
    """Handle a moved head of a PR; the push that moved it may have been told already."""
    if not event.head_ref.startswith(BRANCH_PREFIX):
        return "not a PR of acrouter's"
    return _foreign(context, event.head_ref, event.after, event.sender.login, event.at)


def _foreign(context: Context, branch: str, sha: str, login: str, at: datetime) -> str | None:
    tasks = tasks_of_branch(context, branch)
    if not tasks:
        return "no task has this branch"
    if login == context.forge.login() or any(task.head_sha == sha for task in tasks):
        return "acrouter's own push"
    for task in tasks:
        data = {"by": login, "head_sha": sha}
        context.record_outcome(task, OutcomeKind.FOREIGN_COMMITS, ref=sha, at=at, data=data)
    return None
