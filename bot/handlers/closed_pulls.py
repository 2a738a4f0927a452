"""A closed PR: merged or not, that is what the router learns most from."""

from bot.events import PullRequestClosed
from bot.handlers.context import Context
from bot.handlers.reverts import reverted, reverts_in
from store.states import OutcomeKind
from workers.outcomes import merge_ref, record_outcome, tasks_of_pull_request


def pull_request_closed(context: Context, event: PullRequestClosed) -> str | None:
    """Record the outcome of a PR of ours; a merged PR of anybody may revert one of ours."""
    tasks = tasks_of_pull_request(context.database, context.repository.id, event.number, head_sha=event.head_sha)
    kind = OutcomeKind.MERGED if event.merged else OutcomeKind.CLOSED
    # A PR is merged once; it can be closed, opened and closed again.
    ref = merge_ref(event.number) if event.merged else f"pr:{event.number}@{event.at.isoformat()}"
    data = {
        "pr": event.number,
        "by": event.sender.login,
        "merge_sha": event.merge_sha,
        "head_sha": event.head_sha,
    }
    for task in tasks:
        assert task.id is not None
        record_outcome(context.database, task.id, kind, ref=ref, at=event.at, data=data)
    reverting = event.merged and reverted(
        context, reverts_in(f"{event.title}\n{event.body}", context.repository.full_name), event.at, event.merge_sha
    )
    return None if tasks or reverting else "not a PR of acrouter's"
