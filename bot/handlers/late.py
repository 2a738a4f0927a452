"""A webhook that comes late: what it tells of may have been taken back, and more asked for, in the meantime."""

from datetime import datetime

from bot.handlers.context import Context
from workers.control import latest_task
from workers.errors import TargetGone


def is_open_again(context: Context, number: int, closed_at: datetime) -> bool:
    """Whether an issue or PR that was closed is open now, where its task is younger than that.

    GitHub is asked in that case alone: right after the closing, its answer might be an older one.
    """
    task = latest_task(context.database, context.repository.id, number)
    if task is None or not task.state.is_open or task.created_at <= closed_at:
        return False
    try:
        return context.forge.issue(context.repository, number).state == "open"
    except TargetGone:
        return False
