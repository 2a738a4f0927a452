"""`/route retry`, and the Re-run button of a check: a task's work once more."""

from collections.abc import Sequence
from dataclasses import replace

from bot.commands import Command
from bot.events import CommentCreated
from bot.handlers import dimensions
from bot.handlers.context import Context
from store.states import TaskKind, Trigger
from store.tables import Task
from workers.control import latest_task
from workers.intake import NewTask


def again(context: Context, event: CommentCreated, command: Command) -> NewTask | None:
    """Return the newest task's work as a new task, or None where the comment's own target is to be worked on.

    On a PR that acrouter opened, the issue or the run behind it is tried again. Options of the command replace the
    earlier ones.
    """
    task = latest_task(context.database, context.repository.id, event.number)
    if task is None or task.kind is TaskKind.LOCAL:
        return None
    behind = task.pr_number == event.number and task.target_number != event.number
    if not behind and task.kind is not TaskKind.CI_FAILURE:
        return None
    if behind and task.kind is TaskKind.PULL_REQUEST:
        return None
    once_more = of_task(context, task, event.sender.login)
    return replace(
        once_more,
        dimension=dimensions.asked_for(event.labels) or once_more.dimension,
        hint=command.hint or task.hint,
        pinned_model=command.model,
        budget_usd=command.budget_usd,
    )


def of_task(context: Context, task: Task, login: str) -> NewTask:
    """Return a task's work as a new task of `login`'s: the same words, and the commit that is the newest by then.

    A failed run is about its own commit and stays there. So does a fork's PR: the newest is a stranger's, and who asks
    again has seen that of the check.
    """
    base_ref, base_sha = task.base_ref, task.base_sha if task.kind is TaskKind.CI_FAILURE else ""
    if task.kind is TaskKind.PULL_REQUEST:
        assert task.target_number is not None
        pull = context.forge.pull_request(context.repository, task.target_number)
        seen = task.base_sha if pull.is_fork else ""
        base_ref, base_sha = pull.head_ref, seen or pull.head_sha
    return NewTask(
        repository_id=context.repository.id,
        kind=task.kind,
        trigger=Trigger.COMMAND,
        target=task.target,
        target_number=task.target_number,
        requested_by=login,
        delivery_guid=context.guid,
        title=task.title,
        text=task.text,
        dimension=dimensions.asked_for(_labels_now(context, task)),
        base_ref=base_ref,
        base_sha=base_sha,
        ci_run_id=task.ci_run_id,
        hint=task.hint,
    )


def _labels_now(context: Context, task: Task) -> Sequence[str]:
    """The labels of the issue or PR that a task is about; the event tells of another one's, or of none."""
    if task.target_number is None:
        return ()
    return context.forge.issue(context.repository, task.target_number).labels
