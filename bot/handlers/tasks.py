"""Finds the tasks behind branches and commits."""

from collections.abc import Sequence
from contextlib import suppress

from sqlmodel import col, or_, select

from bot.errors import NotYet
from bot.handlers.context import Context
from store.states import OutcomeKind, TaskState
from store.tables import Outcome, Task
from workers.errors import TargetGone

_MOST_ASKED = 20
"""PRs that one revert may make us ask GitHub about."""


def tasks_of_branch(context: Context, branch: str) -> Sequence[Task]:
    """Return the tasks that pushed to a branch."""
    with context.database.reading() as session:
        return session.exec(
            select(Task)
            .where(Task.repository_id == context.repository.id, Task.branch == branch)
            .order_by(col(Task.id))
        ).all()


def tasks_that_pushed(context: Context, branch: str, sha: str) -> Sequence[Task]:
    """Return the tasks whose work a commit on a branch is; somebody else's later commit is nobody's.

    Raises:
        NotYet: it may be what a task has just pushed: its worker writes that down next, or was lost before it could.
    """
    tasks = tasks_of_branch(context, branch)
    pushed = [task for task in tasks if task.head_sha == sha]
    pushing = [task.id for task in tasks if task.state.is_open and not task.head_sha]
    if pushing and not pushed:
        raise NotYet(f"Task {pushing[0]} is handing its work in on {branch}: what it pushed is not known yet.")
    return pushed


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


def tasks_merged_as(context: Context, sha: str) -> Sequence[Task]:
    """Return the tasks whose PR GitHub knows as merged by this commit, though its event has not come yet."""
    if len(sha) < 7:
        return []
    with context.database.session() as session:
        waiting = session.exec(
            select(Task)
            .where(
                Task.repository_id == context.repository.id,
                Task.state == TaskState.PUBLISHED,
                col(Task.pr_number).is_not(None),
            )
            .order_by(col(Task.id).desc())
            .limit(_MOST_ASKED)
        ).all()
    found = []
    for task in waiting:
        assert task.pr_number is not None
        with suppress(TargetGone):
            pull = context.forge.pull_request(context.repository, task.pr_number)
            if pull.merged and pull.merge_sha.startswith(sha):
                found.append(task)
    return found
