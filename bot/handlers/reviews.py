"""A review that asks for changes is an outcome of the PR."""

from bot.events import ReviewSubmitted
from bot.handlers.context import Context
from bot.handlers.rules import may_write
from store.states import OutcomeKind
from workers.outcomes import tasks_of_pull_request


def review_submitted(context: Context, event: ReviewSubmitted) -> str | None:
    """Record a maintainer's request for changes on a PR of ours.

    Anybody may review a public repository's PR; only those who may push teach the router.
    """
    if event.state != "changes_requested":
        return f"a review that says '{event.state}'"
    tasks = tasks_of_pull_request(context.database, context.repository.id, event.number)
    if not tasks:
        return "not a PR of acrouter's"
    if not may_write(context, event.sender):
        return f"{event.sender.login} has no write permission"
    for task in tasks:
        data = {"pr": event.number, "by": event.sender.login}
        context.record_outcome(
            task, OutcomeKind.CHANGES_REQUESTED, ref=f"review:{event.review_id}", at=event.at, data=data
        )
    return None
