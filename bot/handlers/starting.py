"""Starts a task for somebody and tells them where that is not possible."""

from bot.handlers.context import Context
from templates import render
from workers.configuration import InForce
from workers.intake import Joined, NewTask, Refused, Started, start_task
from workers.onboarding import propose


def start(context: Context, new: NewTask, rules: InForce, *, marker: str) -> str | None:
    """Start a task. A refusal, or an open task that has the target already, is told once for each `marker`."""
    if not rules.onboarded:
        return _refuse(context, new, marker, _not_onboarded(context))
    answer = start_task(context.database, context.queue, new, context.settings)
    match answer:
        case Started():
            return None
        case Joined(task_id):
            if new.requested_by and marker:
                _tell(context, new, marker, "A task is at work here already; its status comment tells where it stands.")
            return f"task {task_id} is at work on this target"
        case Refused(reason):
            return _refuse(context, new, marker, reason)


def refuse_person(context: Context, number: int, login: str, reason: str = "") -> None:
    """Tell a person that they may not start anything: once for each person and target."""
    marker = f"<!-- acrouter:refusal={login} -->"
    body = render("comments/refusal.md.j2", reason=reason, login=login)
    context.forge.reply(context.repository, number, marker, body)


def _not_onboarded(context: Context) -> str:
    pull = propose(context.runtime, context.forge, context.repository)
    if pull is None or pull.state == "closed":
        return "This repository has no .acrouter.yml. Add one to the default branch; an empty one will do."
    return f"This repository is not set up yet: merge PR {pull.number} first, which proposes an .acrouter.yml."


def _refuse(context: Context, new: NewTask, marker: str, reason: str) -> str:
    if marker:
        _tell(context, new, marker, reason)
    return f"refused: {reason}"


def _tell(context: Context, new: NewTask, marker: str, reason: str) -> None:
    if new.target_number is not None:
        body = render("comments/refusal.md.j2", reason=reason, login=new.requested_by)
        context.forge.reply(context.repository, new.target_number, marker, body)
