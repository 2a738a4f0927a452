"""Commands in new comments."""

from dataclasses import replace
from datetime import datetime

from bot.commands import Command, Verb, parse_commands
from bot.errors import CommandError
from bot.events import CommentCreated
from bot.handlers import dimensions, retrying
from bot.handlers.context import Context
from bot.handlers.explaining import budget, explanation, status
from bot.handlers.rules import is_writer, permission_of, rules_now, why_not
from bot.handlers.starting import refuse_person, start
from store.states import TaskKind, TaskState, Trigger
from store.suggest import did_you_mean
from templates import render
from workers.configuration import InForce, kept
from workers.control import request_stop, task_asked_about
from workers.intake import NewTask
from workers.ports import Permission, PullRequestInfo

_ACQUAINTED = frozenset({"OWNER", "MEMBER", "COLLABORATOR", "CONTRIBUTOR"})


def comment_created(context: Context, event: CommentCreated) -> str | None:
    """Carry out a comment's commands, where its author may push to the repository at this moment."""
    if event.sender.is_bot and not _may_be_allowed(context, event):
        return "written by a bot"
    wrong: CommandError | None = None
    commands: list[Command] = []
    try:
        commands = parse_commands(event.body)
    except CommandError as error:
        wrong = error
    if not commands and wrong is None:
        return "no command"
    permission = permission_of(context, event.sender)
    if not event.sender.is_bot and not is_writer(permission):
        # Strangers get no answer: a comment of theirs must not make comments of ours.
        if event.author_association in _ACQUAINTED:
            refuse_person(context, event.number, event.sender.login)
        return f"{event.sender.login} has no write permission"
    try:
        if wrong is not None:
            raise wrong
        rules = rules_now(context)
        if any(command.verb.starts_work for command in commands) or event.sender.is_bot:
            _check_who(context, event, permission, rules)
        for command in commands:
            _check_model(context, command)
        reasons = [_carry_out(context, event, command, rules) for command in commands]
    except CommandError as error:
        _reply(context, event, render("comments/command_error.md.j2", message=str(error)), "error")
        return None
    return None if None in reasons else "; ".join(reason for reason in reasons if reason)


def _carry_out(context: Context, event: CommentCreated, command: Command, rules: InForce) -> str | None:
    match command.verb:
        case Verb.FIX:
            return start(context, _new_task(context, event, command), rules, marker=_marker(event, "fix"))
        case Verb.RETRY:
            again = retrying.again(context, event, command) or _new_task(context, event, command)
            return start(
                context, replace(again, trigger_key=_key(context, event)), rules, marker=_marker(event, "retry")
            )
        case Verb.STOP:
            if _asked_for_later(context, event):
                return "the task here was asked for later"
            if request_stop(context.database, context.queue, context.repository.id, event.number, event.sender.login):
                return None
            if _was_stopped(context, event):
                return "it is stopped already"
            raise CommandError("Nothing is at work here that could be stopped.")
        case Verb.STATUS:
            _reply(context, event, status(context, _task_here(context, event)), "status")
        case Verb.EXPLAIN:
            _reply(context, event, explanation(context, _task_here(context, event)), "explain")
        case Verb.BUDGET:
            _reply(context, event, budget(context, event.sender.login, _task_or_none(context, event)), "budget")
        case Verb.HELP:
            label = rules.config.triggers.label or context.settings.trigger_label
            body = render("comments/help.md.j2", trigger_label=label)
            _reply(context, event, body, "help")
    return None


def _key(context: Context, event: CommentCreated) -> str:
    return f"{context.repository.id}/comment/{event.comment_id}"


def _new_task(context: Context, event: CommentCreated, command: Command) -> NewTask:
    if not event.is_open:
        raise CommandError("This is closed. Open it again first.")
    base_ref = base_sha = ""
    if event.is_pull_request:
        # The head as the person saw it: what is pushed after the command is not worked on unseen.
        pull = context.forge.pull_request(context.repository, event.number)
        _check_seen(event, pull)
        base_ref, base_sha = pull.head_ref, pull.head_sha
    return NewTask(
        repository_id=context.repository.id,
        kind=TaskKind.PULL_REQUEST if event.is_pull_request else TaskKind.ISSUE,
        trigger=Trigger.COMMAND,
        target=context.target("pull" if event.is_pull_request else "issues", event.number),
        target_number=event.number,
        requested_by=event.sender.login,
        delivery_guid=context.guid,
        trigger_key=_key(context, event),
        title=event.title,
        text=event.issue_body,
        dimension=dimensions.asked_for(event.labels),
        base_ref=base_ref,
        base_sha=base_sha,
        hint=command.hint,
        pinned_model=command.model,
        budget_usd=command.budget_usd,
    )


def _check_seen(event: CommentCreated, pull: PullRequestInfo) -> None:
    """Refuse a fork's head that may have come after the command, which nobody with permission has seen.

    GitHub tells what the head is now alone, and a webhook may wait for hours.
    """
    if pull.is_fork and pull.pushed_at is not None and pull.pushed_at >= event.at:
        raise CommandError(
            "Somebody pushed to the fork since your command: its newest commit may not be the one that you saw. "
            "Look at it, then send the command again."
        )


def _check_model(context: Context, command: Command) -> None:
    names = context.runtime.pool.names
    if command.model and command.model not in names:
        raise CommandError(
            f"There is no model '{command.model}' here.{did_you_mean(command.model, names)} "
            f"The pool has: {', '.join(names)}."
        )


def _task_here(context: Context, event: CommentCreated) -> int:
    task_id = _task_or_none(context, event)
    if task_id is None:
        raise CommandError("There has been no task here yet. '/route fix' starts one.")
    return task_id


def _task_or_none(context: Context, event: CommentCreated) -> int | None:
    task = task_asked_about(context.database, context.repository.id, event.number)
    return task.id if task is not None else None


def _asked_for_later(context: Context, event: CommentCreated) -> bool:
    """Whether the newest task was asked for after this comment, or by it: a webhook may come late, or once more."""
    task = task_asked_about(context.database, context.repository.id, event.number)
    asked = (task.trigger_key or "") if task is not None else ""
    kind, _, which = asked.removeprefix(f"{context.repository.id}/").partition("/")
    match kind:
        case "comment":
            return int(which) >= event.comment_id
        case "labeled":
            return datetime.fromisoformat(which.rpartition("/")[2]) > event.at
        case _:
            return False


def _was_stopped(context: Context, event: CommentCreated) -> bool:
    task = task_asked_about(context.database, context.repository.id, event.number)
    return task is not None and task.state is TaskState.STOPPED


def _may_be_allowed(context: Context, event: CommentCreated) -> bool:
    """Whether the configuration, as it was read last, names this bot; it is read anew before anything starts."""
    with context.database.session() as session:
        config = kept(session, context.repository.id)
    return event.sender.login.casefold() in {login.casefold() for login in config.who.bots}


def _check_who(context: Context, event: CommentCreated, permission: Permission, rules: InForce) -> None:
    if reason := why_not(context, event.sender, permission, rules.config):
        raise CommandError(reason)
    if not rules.config.triggers.commands:
        raise CommandError("Here commands start no work (`triggers.commands` in .acrouter.yml).")


def _marker(event: CommentCreated, answer: str) -> str:
    return f"<!-- acrouter:answer={event.comment_id}-{answer} -->"


def _reply(context: Context, event: CommentCreated, body: str, answer: str) -> None:
    context.forge.reply(context.repository, event.number, _marker(event, answer), body)
