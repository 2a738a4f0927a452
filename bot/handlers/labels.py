"""The trigger label on an issue starts a task."""

from bot.events import IssueLabeled
from bot.handlers import dimensions
from bot.handlers.context import Context
from bot.handlers.starting import refuse_person, start
from store.states import TaskKind, Trigger
from workers.intake import NewTask


def issue_labeled(context: Context, event: IssueLabeled) -> str | None:
    """Start a task where a person with write permission put the trigger label on an open issue."""
    if event.label.casefold() != context.settings.trigger_label.casefold():
        return "another label"
    if event.sender.is_bot:
        return "labelled by a bot"
    if not event.is_open:
        return "the issue is closed"
    if not context.may_write(event.sender.login):
        # Triagers may label without being able to push: they are owed a word.
        refuse_person(context, event.number, event.sender.login)
        context.forge.set_state_label(context.repository, event.number, "none")
        return f"{event.sender.login} has no write permission"
    reason = start(
        context,
        NewTask(
            repository_id=context.repository.id,
            kind=TaskKind.ISSUE,
            trigger=Trigger.LABEL,
            target=context.target("issues", event.number),
            target_number=event.number,
            requested_by=event.sender.login,
            delivery_guid=context.guid,
            title=event.title,
            text=event.body,
            dimension=dimensions.asked_for(event.labels),
        ),
        marker=f"<!-- acrouter:delivery={context.guid} -->",
    )
    if reason is not None and reason.startswith("refused"):
        context.forge.set_state_label(context.repository, event.number, "failed")
    return reason
