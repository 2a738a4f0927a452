"""CI: check suites and runs of any service, workflow runs and jobs of GitHub Actions."""

from dataclasses import dataclass
from datetime import datetime

from bot.events.facts import Ignored, RepositoryFact, Sender, other_action, repository_of, sender_of
from bot.payload import Payload


@dataclass(frozen=True)
class CheckSuiteCompleted:
    repository: RepositoryFact
    sender: Sender
    suite_id: int
    app_id: int | None
    app_slug: str
    conclusion: str
    head_branch: str
    """Empty for a fork's."""
    head_sha: str
    at: datetime


@dataclass(frozen=True)
class CheckSuiteRerequested:
    """Somebody pressed the button that runs all checks of one App on a commit again."""

    repository: RepositoryFact
    sender: Sender
    suite_id: int
    app_id: int | None
    head_sha: str
    at: str
    """When the suite changed last, in GitHub's words: each press changes it."""


@dataclass(frozen=True)
class CheckRunRerequested:
    """Somebody pressed the Re-run button of one check."""

    repository: RepositoryFact
    sender: Sender
    check_run_id: int
    app_id: int | None
    external_id: str
    head_sha: str
    at: str = ""
    """When the check run was completed and its suite changed last, in GitHub's words: the same in every webhook that
    tells of this press, and another one at the next, for a press resets the suite."""


@dataclass(frozen=True)
class WorkflowJobCompleted:
    """A job of a workflow run has ended; the others may be running still."""

    repository: RepositoryFact
    sender: Sender
    run_id: int
    name: str
    conclusion: str


@dataclass(frozen=True)
class WorkflowRunCompleted:
    repository: RepositoryFact
    sender: Sender
    run_id: int
    run_attempt: int
    name: str
    trigger: str
    """The event that started the run: `push`, `issue_comment` and so on."""
    conclusion: str
    head_branch: str
    head_sha: str
    head_repository_id: int | None
    """None where the fork is gone."""
    at: datetime


def read_check_suite(payload: Payload) -> CheckSuiteCompleted | CheckSuiteRerequested | Ignored:
    if ignored := other_action(payload, "completed", "rerequested"):
        return ignored
    suite = payload.object("check_suite")
    app = suite.optional_object("app")
    if payload.text("action") == "rerequested":
        return CheckSuiteRerequested(
            repository=repository_of(payload),
            sender=sender_of(payload),
            suite_id=suite.number("id"),
            app_id=app.number("id") if app else None,
            head_sha=suite.text("head_sha"),
            at=suite.optional_text("updated_at"),
        )
    return CheckSuiteCompleted(
        repository=repository_of(payload),
        sender=sender_of(payload),
        suite_id=suite.number("id"),
        app_id=app.number("id") if app else None,
        app_slug=app.optional_text("slug") if app else "",
        conclusion=suite.optional_text("conclusion"),
        head_branch=suite.optional_text("head_branch"),
        head_sha=suite.text("head_sha"),
        at=suite.moment("updated_at"),
    )


def read_workflow_run(payload: Payload) -> WorkflowRunCompleted | Ignored:
    if ignored := other_action(payload, "completed"):
        return ignored
    run = payload.object("workflow_run")
    origin = run.optional_object("head_repository")
    return WorkflowRunCompleted(
        repository=repository_of(payload),
        sender=sender_of(payload),
        run_id=run.number("id"),
        run_attempt=run.number("run_attempt") if "run_attempt" in run.data else 1,
        name=run.optional_text("name"),
        trigger=run.optional_text("event"),
        conclusion=run.optional_text("conclusion"),
        head_branch=run.optional_text("head_branch"),
        head_sha=run.text("head_sha"),
        head_repository_id=origin.number("id") if origin else None,
        at=run.moment("updated_at"),
    )


def read_check_run(payload: Payload) -> CheckRunRerequested | Ignored:
    if ignored := other_action(payload, "rerequested"):
        return ignored
    run = payload.object("check_run")
    app, suite = run.optional_object("app"), run.optional_object("check_suite")
    return CheckRunRerequested(
        repository=repository_of(payload),
        sender=sender_of(payload),
        check_run_id=run.number("id"),
        app_id=app.number("id") if app else None,
        external_id=run.optional_text("external_id"),
        head_sha=run.text("head_sha"),
        at=f"{run.optional_text('completed_at')}/{suite.optional_text('updated_at') if suite else ''}",
    )


def read_workflow_job(payload: Payload) -> WorkflowJobCompleted | Ignored:
    if ignored := other_action(payload, "completed"):
        return ignored
    job = payload.object("workflow_job")
    return WorkflowJobCompleted(
        repository=repository_of(payload),
        sender=sender_of(payload),
        run_id=job.number("run_id"),
        name=job.text("name"),
        conclusion=job.optional_text("conclusion"),
    )
