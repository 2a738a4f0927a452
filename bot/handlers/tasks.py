"""Finds the tasks behind branches and commits."""

from collections.abc import Sequence

from sqlmodel import col, or_, select

from bot.handlers.context import Context
from store.states import OutcomeKind
from store.tables import Outcome, Task


def tasks_of_branch(context: Context, branch: str) -> Sequence[Task]:
    """Return the tasks that pushed to a branch."""
    with context.database.session() as session:
        return session.exec(
            select(Task)
            .where(Task.repository_id == context.repository.id, Task.branch == branch)
            .order_by(col(Task.id))
        ).all()


def tasks_of_commit(context: Context, sha: str) -> Sequence[Task]:
    """Return the tasks whose work came into the repository as this commit: as pushed, or as merged.

    `sha` may be cut, as people cut it, but not below seven digits.
    """
    if len(sha) < 7:
        return []
    with context.database.session() as session:
        rows = session.exec(
            select(Task, Outcome)
            .outerjoin(Outcome, (col(Outcome.task_id) == col(Task.id)) & (col(Outcome.kind) == OutcomeKind.MERGED))
            .where(
                Task.repository_id == context.repository.id,
                or_(col(Outcome.id).is_not(None), col(Task.head_sha).startswith(sha, autoescape=True)),
            )
            .order_by(col(Task.id))
        ).all()
    found = {
        task.id: task
        for task, merged in rows
        if task.head_sha.startswith(sha) or (merged and str(merged.data.get("merge_sha", "")).startswith(sha))
    }
    return list(found.values())
