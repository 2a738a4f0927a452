"""What GitHub tells us, as one closed union of typed events.

`parse` reads only what acrouter uses; GitHub's full descriptions are at https://docs.github.com/webhooks. Everything
that a person typed (titles, bodies, branch names, messages) is untrusted.
"""

from collections.abc import Callable, Mapping
from typing import Any

from bot.errors import PayloadError
from bot.events.checks import (
    CheckRunRerequested,
    CheckSuiteCompleted,
    CheckSuiteRerequested,
    WorkflowJobCompleted,
    WorkflowRunCompleted,
    read_check_run,
    read_check_suite,
    read_workflow_job,
    read_workflow_run,
)
from bot.events.facts import Ignored, RepositoryFact, Sender, sender_named
from bot.events.installations import (
    InstallationChanged,
    Ping,
    RepositoriesChanged,
    read_installation,
    read_installation_repositories,
    read_ping,
)
from bot.events.issues import CommentCreated, IssueClosed, IssueLabeled, read_issue_comment, read_issues
from bot.events.pulls import (
    PullRequestClosed,
    PullRequestReopened,
    PullRequestRetargeted,
    PullRequestSynchronized,
    ReviewSubmitted,
    read_pull_request,
    read_pull_request_review,
)
from bot.events.pushes import Commit, Pushed, read_push
from bot.payload import Payload

__all__ = [
    "CheckRunRerequested",
    "CheckSuiteCompleted",
    "CheckSuiteRerequested",
    "CommentCreated",
    "Commit",
    "Event",
    "Ignored",
    "InstallationChanged",
    "IssueClosed",
    "IssueLabeled",
    "Ping",
    "PullRequestClosed",
    "PullRequestReopened",
    "PullRequestRetargeted",
    "PullRequestSynchronized",
    "Pushed",
    "RepositoriesChanged",
    "RepositoryEvent",
    "RepositoryFact",
    "ReviewSubmitted",
    "Sender",
    "WorkflowJobCompleted",
    "WorkflowRunCompleted",
    "parse",
    "sender_named",
]

RepositoryEvent = (
    IssueLabeled
    | IssueClosed
    | CommentCreated
    | PullRequestClosed
    | PullRequestSynchronized
    | PullRequestReopened
    | PullRequestRetargeted
    | ReviewSubmitted
    | CheckSuiteCompleted
    | CheckSuiteRerequested
    | CheckRunRerequested
    | WorkflowRunCompleted
    | WorkflowJobCompleted
    | Pushed
)
Event = RepositoryEvent | InstallationChanged | RepositoriesChanged | Ping | Ignored

_READERS: dict[str, Callable[[Payload], Event]] = {
    "issues": read_issues,
    "issue_comment": read_issue_comment,
    "pull_request": read_pull_request,
    "pull_request_review": read_pull_request_review,
    "check_suite": read_check_suite,
    "check_run": read_check_run,
    "workflow_run": read_workflow_run,
    "workflow_job": read_workflow_job,
    "push": read_push,
    "installation": read_installation,
    "installation_repositories": read_installation_repositories,
    "ping": read_ping,
}


def parse(event: str, payload: Mapping[str, Any]) -> Event:
    """Return the event that a delivery tells of. `event` is the `X-GitHub-Event` header.

    Raises:
        PayloadError: a field that is needed is missing or of another kind; the message names it.
    """
    reader = _READERS.get(event)
    if reader is None:
        return Ignored(f"acrouter has no use for '{event}' events")
    try:
        return reader(Payload(payload))
    except PayloadError as error:
        raise PayloadError(f"{event}: {error}") from error
