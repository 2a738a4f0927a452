"""An issue that was closed, deleted or transferred: work on it is not wanted any more."""

from bot.events import IssueClosed
from bot.handlers.context import Context
from bot.handlers.late import is_open_again
from workers.control import request_stop


def issue_closed(context: Context, event: IssueClosed) -> str | None:
    """Stop the open task on the issue before it spends more."""
    if is_open_again(context, event.number, event.at):
        return "it was opened again since"
    why = f"who {event.how} it"
    stopped = request_stop(
        context.database, context.queue, context.repository.id, event.number, event.sender.login, why=why
    )
    return None if stopped else "nothing is at work on it"
