"""The trigger label on an issue starts a task."""

from bot.events import IssueLabeled
from bot.handlers import dimensions
from bot.handlers.context import Context
from bot.handlers.rules import is_writer, permission_of, rules_now, why_not
from bot.handlers.starting import refuse_person, start
from store.states import TaskKind, Trigger
from workers.configuration import kept
from workers.intake import NewTask


def issue_labeled(context: Context, event: IssueLabeled) -> str | None:
    """Start a task where a person who may put the trigger label on an open issue."""
    label = _trigger(context)
    if event.label.casefold() != label.casefold():
        return "another label"
    if not event.is_open:
        return "the issue is closed"
    permission = permission_of(context, event.sender)
    if not event.sender.is_bot and not is_writer(permission):
        # Triagers may label without being able to push: they are owed a word.
        refuse_person(context, event.number, event.sender.login)
        context.forge.set_state_label(context.repository, event.number, "none", label)
        return f"{event.sender.login} has no write permission"
    rules = rules_now(context)
    if reason := why_not(context, event.sender, permission, rules.config):
        if not event.sender.is_bot:
            refuse_person(context, event.number, event.sender.login, reason)
            context.forge.set_state_label(context.repository, event.number, "none", label)
        return reason
    answer = start(
        context,
        NewTask(
            repository_id=context.repository.id,
            kind=TaskKind.ISSUE,
            trigger=Trigger.LABEL,
            target=context.target("issues", event.number),
            target_number=event.number,
            requested_by=event.sender.login,
            delivery_guid=context.guid,
            trigger_key=f"{context.repository.id}/labeled/{event.number}/{event.at}" if event.at else None,
            title=event.title,
            text=event.body,
            dimension=dimensions.asked_for(event.labels),
        ),
        rules,
        marker=f"<!-- acrouter:delivery={context.guid} -->",
    )
    if answer is not None and answer.startswith("refused"):
        context.forge.set_state_label(context.repository, event.number, "failed", label)
    return answer


def _trigger(context: Context) -> str:
    """The label as the configuration was read last: asking GitHub about every label would be too much."""
    with context.database.session() as session:
        return kept(session, context.repository.id).triggers.label or context.settings.trigger_label
