"""Answers to `/route status`, `/route explain` and `/route budget`."""

from bot.handlers.context import Context
from store.tables import Task
from templates import render
from workers import budgets
from workers.views import task_view


def status(context: Context, task_id: int) -> str:
    """Return where a task stands, in a few lines."""
    view = task_view(context.database, task_id, context.settings, context.runtime.pool)
    return render("comments/status_reply.md.j2", view=view)


def explanation(context: Context, task_id: int) -> str:
    """Return why a task's models were chosen: votes, plan and neighbours."""
    view = task_view(context.database, task_id, context.settings, context.runtime.pool)
    return render("comments/explain.md.j2", view=view)


def budget(context: Context, login: str, task_id: int | None) -> str:
    """Return what is spent of each cap that a task of this person here meets, and who can raise it."""
    with context.database.session() as session:
        task = session.get(Task, task_id) if task_id is not None else None
        spent = budgets.to_usd(budgets.spent_micros(session, task_id=task_id)) if task is not None else 0.0
        caps = budgets.usage(session, context.settings, repository_id=context.repository.id, requested_by=login)
    return render("comments/budget.md.j2", task=task, spent_usd=spent, caps=caps)
