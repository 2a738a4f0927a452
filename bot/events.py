"""What GitHub tells us, as one closed union of typed events.

`parse` reads only what acrouter uses; GitHub's full descriptions are at https://docs.github.com/webhooks. Everything
that a person typed (titles, bodies, branch names, messages) is untrusted.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from bot.errors import PayloadError
from bot.payload import Payload


@dataclass(frozen=True)
class Sender:
    """Who did it."""

    login: str
    is_bot: bool


@dataclass(frozen=True)
class RepositoryFact:
    """A repository as an event shows it."""

    id: int
    full_name: str
    default_branch: str
    private: bool
    installation_id: int | None
    """None where the event did not come through an installation of the App."""


@dataclass(frozen=True)
class IssueLabeled:
    repository: RepositoryFact
    sender: Sender
    number: int
    title: str
    body: str
    label: str
    is_open: bool
    labels: tuple[str, ...] = ()
    """All that the issue carries."""


@dataclass(frozen=True)
class IssueClosed:
    repository: RepositoryFact
    sender: Sender
    number: int


@dataclass(frozen=True)
class CommentCreated:
    """A comment on an issue or, as GitHub sends them alike, in the conversation of a PR."""

    repository: RepositoryFact
    sender: Sender
    number: int
    is_pull_request: bool
    is_open: bool
    title: str
    issue_body: str
    comment_id: int
    body: str
    author_association: str
    labels: tuple[str, ...] = ()
    """Of the issue or PR."""


@dataclass(frozen=True)
class PullRequestClosed:
    repository: RepositoryFact
    sender: Sender
    number: int
    title: str
    body: str
    merged: bool
    merge_sha: str
    head_ref: str
    head_sha: str
    at: datetime


@dataclass(frozen=True)
class PullRequestSynchronized:
    """The head of a PR has moved."""

    repository: RepositoryFact
    sender: Sender
    number: int
    head_ref: str
    before: str
    after: str
    at: datetime


@dataclass(frozen=True)
class ReviewSubmitted:
    repository: RepositoryFact
    sender: Sender
    number: int
    review_id: int
    state: str
    """approved, changes_requested or commented."""
    at: datetime


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


@dataclass(frozen=True)
class Commit:
    sha: str
    message: str


@dataclass(frozen=True)
class Pushed:
    """A branch got new commits."""

    repository: RepositoryFact
    sender: Sender
    branch: str
    before: str
    after: str
    commits: tuple[Commit, ...]
    at: datetime


@dataclass(frozen=True)
class InstallationChanged:
    """The App was installed, removed, suspended or given other permissions."""

    action: str
    installation_id: int
    account: str
    suspended: bool
    removed: bool
    repositories: tuple[RepositoryFact, ...]


@dataclass(frozen=True)
class RepositoriesChanged:
    """An installation covers other repositories than before."""

    installation_id: int
    account: str
    added: tuple[RepositoryFact, ...]
    removed_ids: tuple[int, ...]


@dataclass(frozen=True)
class Ping:
    zen: str


@dataclass(frozen=True)
class Ignored:
    """An event that asks nothing of acrouter."""

    reason: str


RepositoryEvent = (
    IssueLabeled
    | IssueClosed
    | CommentCreated
    | PullRequestClosed
    | PullRequestSynchronized
    | ReviewSubmitted
    | CheckSuiteCompleted
    | WorkflowRunCompleted
    | Pushed
)
Event = RepositoryEvent | InstallationChanged | RepositoriesChanged | Ping | Ignored


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


def _issues(payload: Payload) -> Event:
    if ignored := _other_action(payload, "labeled", "closed"):
        return ignored
    issue = payload.object("issue")
    if payload.text("action") == "closed":
        return IssueClosed(_repository(payload), _sender(payload), issue.number("number"))
    label = payload.optional_object("label")
    return IssueLabeled(
        repository=_repository(payload),
        sender=_sender(payload),
        number=issue.number("number"),
        title=issue.text("title"),
        body=issue.optional_text("body"),
        label=label.text("name") if label else "",
        is_open=issue.text("state") == "open",
        labels=_labels(issue),
    )


def _labels(issue: Payload) -> tuple[str, ...]:
    return tuple(label.optional_text("name") for label in issue.objects("labels"))


def _issue_comment(payload: Payload) -> Event:
    if ignored := _other_action(payload, "created"):
        return ignored
    issue, comment = payload.object("issue"), payload.object("comment")
    return CommentCreated(
        repository=_repository(payload),
        sender=_sender(payload),
        number=issue.number("number"),
        is_pull_request=issue.optional_object("pull_request") is not None,
        is_open=issue.text("state") == "open",
        title=issue.text("title"),
        issue_body=issue.optional_text("body"),
        comment_id=comment.number("id"),
        body=comment.optional_text("body"),
        author_association=comment.optional_text("author_association"),
        labels=_labels(issue),
    )


def _pull_request(payload: Payload) -> Event:
    if ignored := _other_action(payload, "closed", "synchronize"):
        return ignored
    pull = payload.object("pull_request")
    head = pull.object("head")
    if payload.text("action") == "closed":
        return PullRequestClosed(
            repository=_repository(payload),
            sender=_sender(payload),
            number=pull.number("number"),
            title=pull.text("title"),
            body=pull.optional_text("body"),
            merged=pull.flag("merged"),
            merge_sha=pull.optional_text("merge_commit_sha") if pull.flag("merged") else "",
            head_ref=head.text("ref"),
            head_sha=head.text("sha"),
            at=pull.moment("closed_at"),
        )
    return PullRequestSynchronized(
        repository=_repository(payload),
        sender=_sender(payload),
        number=pull.number("number"),
        head_ref=head.text("ref"),
        before=payload.optional_text("before"),
        after=payload.optional_text("after") or head.text("sha"),
        at=pull.moment("updated_at"),
    )


def _pull_request_review(payload: Payload) -> Event:
    if ignored := _other_action(payload, "submitted"):
        return ignored
    review = payload.object("review")
    return ReviewSubmitted(
        repository=_repository(payload),
        sender=_sender(payload),
        number=payload.object("pull_request").number("number"),
        review_id=review.number("id"),
        state=review.text("state").lower(),
        at=review.moment("submitted_at"),
    )


def _check_suite(payload: Payload) -> Event:
    if ignored := _other_action(payload, "completed"):
        return ignored
    suite = payload.object("check_suite")
    app = suite.optional_object("app")
    return CheckSuiteCompleted(
        repository=_repository(payload),
        sender=_sender(payload),
        suite_id=suite.number("id"),
        app_id=app.number("id") if app else None,
        app_slug=app.optional_text("slug") if app else "",
        conclusion=suite.optional_text("conclusion"),
        head_branch=suite.optional_text("head_branch"),
        head_sha=suite.text("head_sha"),
        at=suite.moment("updated_at"),
    )


def _workflow_run(payload: Payload) -> Event:
    if ignored := _other_action(payload, "completed"):
        return ignored
    run = payload.object("workflow_run")
    origin = run.optional_object("head_repository")
    return WorkflowRunCompleted(
        repository=_repository(payload),
        sender=_sender(payload),
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


def _push(payload: Payload) -> Event:
    ref = payload.text("ref")
    if not ref.startswith("refs/heads/"):
        return Ignored("a push of a tag")
    if payload.flag("deleted"):
        return Ignored("a branch was deleted")
    return Pushed(
        repository=_repository(payload),
        sender=_sender(payload),
        branch=ref.removeprefix("refs/heads/"),
        before=payload.text("before"),
        after=payload.text("after"),
        commits=tuple(Commit(c.text("id"), c.optional_text("message")) for c in payload.objects("commits")),
        at=_pushed_at(payload),
    )


def _pushed_at(payload: Payload) -> datetime:
    """The time of a push; a commit's own, which is its author's clock, only where GitHub gives none."""
    repository, head = payload.object("repository"), payload.optional_object("head_commit")
    if repository.data.get("pushed_at") is None and head is not None:
        return head.moment("timestamp")
    return repository.moment("pushed_at")


def _installation(payload: Payload) -> Event:
    installation = payload.object("installation")
    action = payload.text("action")
    account = _account(installation)
    number = installation.number("id")
    return InstallationChanged(
        action=action,
        installation_id=number,
        account=account,
        suspended=action == "suspend" or (action != "unsuspend" and installation.data.get("suspended_at") is not None),
        removed=action == "deleted",
        repositories=tuple(_listed(item, number) for item in payload.objects("repositories")),
    )


def _installation_repositories(payload: Payload) -> Event:
    installation = payload.object("installation")
    number = installation.number("id")
    return RepositoriesChanged(
        installation_id=number,
        account=_account(installation),
        added=tuple(_listed(item, number) for item in payload.objects("repositories_added")),
        removed_ids=tuple(item.number("id") for item in payload.objects("repositories_removed")),
    )


def _ping(payload: Payload) -> Event:
    return Ping(payload.optional_text("zen"))


_READERS: dict[str, Callable[[Payload], Event]] = {
    "issues": _issues,
    "issue_comment": _issue_comment,
    "pull_request": _pull_request,
    "pull_request_review": _pull_request_review,
    "check_suite": _check_suite,
    "workflow_run": _workflow_run,
    "push": _push,
    "installation": _installation,
    "installation_repositories": _installation_repositories,
    "ping": _ping,
}


def _other_action(payload: Payload, *wanted: str) -> Ignored | None:
    action = payload.text("action")
    return None if action in wanted else Ignored(f"the action '{action}' asks nothing of acrouter")


def _sender(payload: Payload) -> Sender:
    """The sender; GitHub leaves it out for what it does by itself."""
    sender = payload.optional_object("sender")
    if sender is None:
        return Sender("", is_bot=True)
    login = sender.text("login")
    return Sender(login, is_bot=sender.optional_text("type") == "Bot" or login.endswith("[bot]"))


def _repository(payload: Payload) -> RepositoryFact:
    repository = payload.object("repository")
    installation = payload.optional_object("installation")
    return RepositoryFact(
        id=repository.number("id"),
        full_name=repository.text("full_name"),
        default_branch=repository.optional_text("default_branch"),
        private=repository.flag("private"),
        installation_id=installation.number("id") if installation else None,
    )


def _listed(repository: Payload, installation_id: int) -> RepositoryFact:
    """A repository as installation events list it: without its default branch."""
    return RepositoryFact(
        id=repository.number("id"),
        full_name=repository.text("full_name"),
        default_branch="",
        private=repository.flag("private"),
        installation_id=installation_id,
    )


def _account(installation: Payload) -> str:
    account = installation.optional_object("account")
    if account is None:
        return ""
    return account.optional_text("login") or account.optional_text("slug")
