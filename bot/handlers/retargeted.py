"""A PR goes to another base branch: what a task works out for the old one may not fit any more."""

from bot.events import PullRequestRetargeted
from bot.handlers.context import Context
from workers.control import request_stop


def pull_request_retargeted(context: Context, event: PullRequestRetargeted) -> str | None:
    """Stop the open task on the PR, with words; `/route retry` begins anew on the PR as it is then."""
    why = f"who gave it another base, {event.base_ref}"
    stopped = request_stop(
        context.database, context.queue, context.repository.id, event.number, event.sender.login, why=why
    )
    return None if stopped else "nothing is at work on it"
