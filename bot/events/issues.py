"""Issues and the comments on them; GitHub sends comments in a PR's conversation alike."""

from dataclasses import dataclass
from datetime import datetime

from bot.events.facts import Ignored, RepositoryFact, Sender, other_action, repository_of, sender_of
from bot.payload import Payload


@dataclass(frozen=True)
class IssueLabeled:
    repository: RepositoryFact
    sender: Sender
    number: int
    title: str
    body: str
    label: str
    is_open: bool
    at: str = ""
    """The issue's last change in GitHub's words: the same in every webhook that tells of this one."""
    labels: tuple[str, ...] = ()
    """All that the issue carries."""


@dataclass(frozen=True)
class IssueClosed:
    """An issue was closed, or is not there any more."""

    repository: RepositoryFact
    sender: Sender
    number: int
    at: datetime
    how: str = "closed"
    """Or deleted, or transferred to another repository."""


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
    at: datetime
    labels: tuple[str, ...] = ()
    """Of the issue or PR."""


def read_issues(payload: Payload) -> IssueLabeled | IssueClosed | Ignored:
    if ignored := other_action(payload, "labeled", "closed", "deleted", "transferred"):
        return ignored
    issue, action = payload.object("issue"), payload.text("action")
    if action != "labeled":
        number, at = issue.number("number"), issue.moment("closed_at" if action == "closed" else "updated_at")
        return IssueClosed(repository_of(payload), sender_of(payload), number, at, action)
    label = payload.optional_object("label")
    return IssueLabeled(
        repository=repository_of(payload),
        sender=sender_of(payload),
        number=issue.number("number"),
        title=issue.text("title"),
        body=issue.optional_text("body"),
        label=label.text("name") if label else "",
        is_open=issue.text("state") == "open",
        at=issue.optional_text("updated_at"),
        labels=_labels(issue),
    )


def read_issue_comment(payload: Payload) -> CommentCreated | Ignored:
    if ignored := other_action(payload, "created"):
        return ignored
    issue, comment = payload.object("issue"), payload.object("comment")
    return CommentCreated(
        repository=repository_of(payload),
        sender=sender_of(payload),
        number=issue.number("number"),
        is_pull_request=issue.optional_object("pull_request") is not None,
        is_open=issue.text("state") == "open",
        title=issue.text("title"),
        issue_body=issue.optional_text("body"),
        comment_id=comment.number("id"),
        body=comment.optional_text("body"),
        author_association=comment.optional_text("author_association"),
        at=comment.moment("created_at"),
        labels=_labels(issue),
    )


def _labels(issue: Payload) -> tuple[str, ...]:
    return tuple(label.optional_text("name") for label in issue.objects("labels"))
