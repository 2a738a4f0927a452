"""Answers to `/route status` and `/route explain`."""

from bot.handlers.context import Context
from templates import render
from workers.views import task_view


def status(context: Context, task_id: int) -> str:
    """Return where a task stands, in a few lines."""
    view = task_view(context.database, task_id, context.settings, context.runtime.pool)
    return render("comments/status_reply.md.j2", view=view)


def explanation(context: Context, task_id: int) -> str:
    """Return why a task's models were chosen: votes, plan and neighbours."""
    view = task_view(context.database, task_id, context.settings, context.runtime.pool)
    return render("comments/explain.md.j2", view=view)
