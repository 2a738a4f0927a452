"""A closed PR: merged or not, that is what the router learns most from."""

from functools import partial

from bot.events import PullRequestClosed
from bot.handlers.context import Context
from bot.handlers.late import is_open_again
from bot.handlers.reverts import reverted, reverts_in
from bot.handlers.rules import may_write
from store.states import OutcomeKind
from workers.control import request_stop
from workers.outcomes import merge_ref, tasks_of_pull_request
from workers.ports import BranchHead


def pull_request_closed(context: Context, event: PullRequestClosed) -> str | None:
    """Record the outcome of a PR of ours, or stop the work on it; a merged PR of anybody may revert one of ours."""
    own = event.head_repository_id == context.repository.id
    head = BranchHead(event.head_ref, event.head_sha) if own else None
    tasks = tasks_of_pull_request(context.database, context.repository.id, event.number, head=head)
    kind = OutcomeKind.MERGED if event.merged else OutcomeKind.CLOSED
    # A PR is merged once; it can be closed, opened and closed again.
    ref = merge_ref(event.number) if event.merged else f"pr:{event.number}@{event.at.isoformat()}"
    data = {
        "pr": event.number,
        "by": event.sender.login,
        "merge_sha": event.merge_sha,
        "head_sha": event.head_sha,
    }
    stopped = None
    if not is_open_again(context, event.number, event.at):
        stopped = request_stop(
            *(context.database, context.queue, context.repository.id, event.number, event.sender.login),
            why="who closed it",
        )
    for task in tasks:
        context.record_outcome(task, kind, ref=ref, at=event.at, data=data)
    reverting = event.merged and _reverting(context, event)
    return None if tasks or reverting or stopped else "not a PR of acrouter's"


def _reverting(context: Context, event: PullRequestClosed) -> bool:
    """Whether it takes our work back, in the words of somebody who may push, as GitHub's Revert button asks for too."""
    reverts = reverts_in(f"{event.title}\n\n{event.body}", context.repository.full_name)
    if not reverts or not may_write(context, event.author):
        return False
    changes = partial(context.forge.pull_request_changes, context.repository, event.number)
    return reverted(context, reverts, changes, event.at, event.merge_sha)
