"""A PR of ours that somebody opened again: it waits for its end once more, and is told to."""

from bot.events import PullRequestReopened
from bot.handlers.context import Context
from workers.outcomes import record_reopened, tasks_of_pull_request


def pull_request_reopened(context: Context, event: PullRequestReopened) -> str | None:
    """Put its tasks back to where they wait for the PR's end, where it is open at this moment."""
    tasks = tasks_of_pull_request(context.database, context.repository.id, event.number)
    if not tasks:
        return "not a PR of acrouter's"
    if context.forge.pull_request(context.repository, event.number).state == "closed":
        return "it is closed again"
    for task in tasks:
        assert task.id is not None
        if record_reopened(context.database, task.id):
            context.queue.work(task.id)
    return None
