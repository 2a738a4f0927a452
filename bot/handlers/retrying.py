"""`/route retry`: the newest task of a target once more."""

from bot.commands import Command
from bot.events import CommentCreated
from bot.handlers.context import Context
from store.states import TaskKind, Trigger
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
    return NewTask(
        repository_id=context.repository.id,
        kind=task.kind,
        trigger=Trigger.COMMAND,
        target=task.target,
        target_number=task.target_number,
        requested_by=event.sender.login,
        delivery_guid=context.guid,
        title=task.title,
        text=task.text,
        base_ref=task.base_ref,
        base_sha=task.base_sha if task.kind is TaskKind.CI_FAILURE else "",
        ci_run_id=task.ci_run_id,
        hint=command.hint or task.hint,
        pinned_model=command.model,
        budget_usd=command.budget_usd,
    )
