"""Completed CI: on acrouter's own branches an outcome, on the repository's others, where it says so, a task."""

from sqlmodel import select

from bot.events import CheckSuiteCompleted, WorkflowRunCompleted
from bot.github.ci import WRITERS_TRIGGERS
from bot.handlers.context import Context
from bot.handlers.rules import rules_now
from bot.handlers.starting import start
from bot.handlers.tasks import tasks_that_pushed
from store.repo_config import CONFIG_FILE
from store.states import OutcomeKind, TaskKind, Trigger
from store.tables import Task
from workers.forge_target import BRANCH_PREFIX
from workers.intake import NewTask

_FAILED = frozenset({"failure", "timed_out"})
_ACTIONS = "github-actions"
_MERGE_QUEUE = "gh-readonly-queue/"
"""https://docs.github.com/en/repositories/configuring-branches-and-merges-in-your-repository/configuring-pull-request-merges/managing-a-merge-queue"""


def workflow_run_completed(  # noqa: PLR0911  (one line a reason)
    context: Context, event: WorkflowRunCompleted
) -> str | None:
    """Handle a finished run of GitHub Actions."""
    if event.head_repository_id != context.repository.id:
        return "a run for a fork"
    if not event.head_branch:
        return "a run without a branch"
    if event.trigger not in WRITERS_TRIGGERS:
        return f"a run that '{event.trigger}' started, which needs no write permission"
    if event.head_branch.startswith(BRANCH_PREFIX):
        return _outcome(context, event, ref=f"run:{event.run_id}.{event.run_attempt}", name=event.name)
    if tasks_that_pushed(context, event.head_branch, event.head_sha):
        return _outcome(context, event, ref=f"run:{event.run_id}.{event.run_attempt}", name=event.name)
    if event.conclusion not in _FAILED:
        return f"the run ended with '{event.conclusion}'"
    return _start(context, event, event.run_id, event.name)


def check_suite_completed(  # noqa: PLR0911  (one line a reason)
    context: Context, event: CheckSuiteCompleted
) -> str | None:
    """Handle a finished check suite: of Actions it tells what its run tells, of another service an outcome only."""
    if event.app_id is not None and event.app_id == context.settings.github_app_id:
        return "acrouter's own check"
    if not event.head_branch:
        return "a check of a fork"
    if event.head_branch.startswith(BRANCH_PREFIX):
        if event.app_slug == _ACTIONS:
            return "counted by its workflow run"
        return _outcome(context, event, ref=f"suite:{event.suite_id}", name=event.app_slug or "CI")
    if event.app_slug == _ACTIONS and tasks_that_pushed(context, event.head_branch, event.head_sha):
        return "counted by its workflow run"
    if event.conclusion not in _FAILED:
        return f"the suite ended with '{event.conclusion}'"
    return _start_for_suite(context, event)


def _start_for_suite(context: Context, event: CheckSuiteCompleted) -> str | None:
    if event.app_slug != _ACTIONS:
        return f"'{event.app_slug}' gives no logs that acrouter could read"
    if context.forge.file_text(context.repository, CONFIG_FILE, "") is None:
        return f"there is no {CONFIG_FILE}"  # most repositories: one question to GitHub, not three
    run_id = context.forge.failed_run_of_suite(context.repository, event.suite_id)
    if run_id is None:
        return "no failed workflow run belongs to this suite"
    return _start(context, event, run_id, context.forge.ci_failure(context.repository, run_id).name)


def _outcome(context: Context, event: WorkflowRunCompleted | CheckSuiteCompleted, *, ref: str, name: str) -> str | None:
    if event.conclusion != "success" and event.conclusion not in _FAILED:
        return f"CI ended with '{event.conclusion}', which says nothing of the patch"
    kind = OutcomeKind.CI_PASSED if event.conclusion == "success" else OutcomeKind.CI_FAILED
    tasks = tasks_that_pushed(context, event.head_branch, event.head_sha)
    for task in tasks:
        data = {"name": name, "head_sha": event.head_sha}
        context.record_outcome(task, kind, ref=ref, at=event.at, data=data)
    return None if tasks else "no task pushed this commit"


def _start(  # noqa: PLR0911  (one line a reason)
    context: Context, event: WorkflowRunCompleted | CheckSuiteCompleted, run_id: int, name: str
) -> str | None:
    branch, head_sha = event.head_branch, event.head_sha
    if branch.startswith(_MERGE_QUEUE):
        return "a merge queue's own branch, which is gone when the queue has tried"
    rules = rules_now(context)
    if not rules.config.wants_ci_fix(name):
        return f"{CONFIG_FILE} {'has a mistake' if rules.mistakes else 'does not ask for it'}"
    with context.database.reading() as session:
        known = session.exec(
            select(Task.id).where(Task.repository_id == context.repository.id, Task.ci_run_id == run_id)
        ).first()
    if known is not None:
        return f"task {known} was started for this run"
    head = context.forge.branch_head(context.repository, branch)
    if head is None or head.sha != head_sha:
        return "the branch has moved on"
    if rules.config.rerun_flakes and context.forge.rerun_failed_jobs(context.repository, run_id):
        return "its failed jobs run once more first: it may be a flake"
    pull = context.forge.find_pull_request(context.repository, branch)
    number = pull.number if pull is not None and pull.state == "open" else None
    if number is not None and pull is not None and (reason := _base_is_to_blame(context, run_id, pull.base_ref)):
        return reason
    return start(
        context,
        NewTask(
            repository_id=context.repository.id,
            kind=TaskKind.CI_FAILURE,
            trigger=Trigger.CI,
            target=context.target("branch", branch) if number is None else context.target("pull", number),
            target_number=number,
            requested_by=event.sender.login,
            delivery_guid=context.guid,
            title=f"{name} fails on {branch}",
            base_ref=branch,
            base_sha=head_sha,
            ci_run_id=run_id,
        ),
        rules,
        marker="",  # nobody asked: there is nobody to answer
    )


def _base_is_to_blame(context: Context, run_id: int, base_ref: str) -> str | None:
    """Why a PR's failed run is not the PR's: each job that failed fails on the base branch too."""
    here = {job.name for job in context.forge.ci_failure(context.repository, run_id).jobs}
    there = context.forge.failing_jobs(context.repository, run_id, base_ref)
    return f"the same jobs fail on {base_ref}: {', '.join(sorted(here))}" if here and here <= there else None
