"""The buttons that run acrouter's own checks again: of one check, and of all on a commit."""

import re
from dataclasses import replace

from bot.events import CheckRunRerequested, CheckSuiteRerequested
from bot.handlers.configuration import CHECK_ID, check_configuration
from bot.handlers.context import Context
from bot.handlers.retrying import of_task
from bot.handlers.rules import is_writer, permission_of, rules_now, why_not
from bot.handlers.starting import refuse_person, start
from store.tables import Task

_TASK = re.compile(r"acrouter-task-([0-9]{1,18})")


def check_run_rerequested(context: Context, event: CheckRunRerequested) -> str | None:
    """Do a check's work once more where the person may: the task that it stands for, or the look at the configuration.

    GitHub shows the button to everybody who may push.
    """
    if event.app_id != context.settings.github_app_id:
        return "another App's check"
    permission = permission_of(context, event.sender)
    if not is_writer(permission):
        return f"{event.sender.login} has no write permission"
    if event.external_id == CHECK_ID:
        return check_configuration(context, event.head_sha)
    found = _TASK.fullmatch(event.external_id)
    with context.database.session() as session:
        task = session.get(Task, int(found[1])) if found else None
    if task is None or task.repository_id != context.repository.id:
        return "no task of this repository has this check"
    rules = rules_now(context)
    if reason := why_not(context, event.sender, permission, rules.config):
        if task.target_number is not None:
            refuse_person(context, task.target_number, event.sender.login, reason)
        return reason
    # One press starts one task, also where its signed body comes again under another delivery id, which nobody signs.
    press = f"{context.repository.id}/rerun/{event.check_run_id}/{event.at}"
    new = replace(of_task(context, task, event.sender.login), trigger_key=press)
    return start(context, new, rules, marker=f"<!-- acrouter:press={press} -->")


def check_suite_rerequested(context: Context, event: CheckSuiteRerequested) -> str | None:
    """Do what the Re-run buttons of the suite's checks would: that of the newest task, and the configuration's."""
    if event.app_id != context.settings.github_app_id:
        return "another App's checks"
    runs = context.forge.check_runs_of_suite(context.repository, event.suite_id)
    newest = max((run for run in runs if _TASK.fullmatch(run.external_id)), key=lambda run: run.id, default=None)
    of_configuration = next((run for run in runs if run.external_id == CHECK_ID), None)
    answers = [
        check_run_rerequested(
            context,
            CheckRunRerequested(
                event.repository, event.sender, run.id, event.app_id, run.external_id, event.head_sha, event.at
            ),
        )
        for run in (newest, of_configuration)
        if run is not None
    ]
    if None in answers:
        return None
    return "; ".join(answer for answer in answers if answer) or "no task of this repository has a check there"
