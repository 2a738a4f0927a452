"""Pull requests and their reviews."""

from dataclasses import dataclass
from datetime import datetime

from bot.events.facts import Ignored, RepositoryFact, Sender, other_action, repository_of, sender_of, user_of
from bot.payload import Payload


@dataclass(frozen=True)
class PullRequestClosed:
    repository: RepositoryFact
    sender: Sender
    author: Sender
    """Who opened it, which need not be who closed it."""
    number: int
    title: str
    body: str
    merged: bool
    merge_sha: str
    head_ref: str
    head_sha: str
    head_repository_id: int | None
    """None where the fork is gone."""
    at: datetime


@dataclass(frozen=True)
class PullRequestSynchronized:
    """The head of a PR has moved."""

    repository: RepositoryFact
    sender: Sender
    number: int
    head_ref: str
    head_repository_id: int | None
    """None where the fork is gone."""
    before: str
    after: str
    at: datetime


@dataclass(frozen=True)
class PullRequestReopened:
    """A PR that was closed is open again."""

    repository: RepositoryFact
    sender: Sender
    number: int


@dataclass(frozen=True)
class PullRequestRetargeted:
    """A PR goes to another base branch than before."""

    repository: RepositoryFact
    sender: Sender
    number: int
    base_ref: str


@dataclass(frozen=True)
class ReviewSubmitted:
    repository: RepositoryFact
    sender: Sender
    number: int
    review_id: int
    state: str
    """approved, changes_requested or commented."""
    at: datetime


def read_pull_request(
    payload: Payload,
) -> PullRequestClosed | PullRequestReopened | PullRequestSynchronized | PullRequestRetargeted | Ignored:
    if ignored := other_action(payload, "closed", "reopened", "synchronize", "edited"):
        return ignored
    pull = payload.object("pull_request")
    if payload.text("action") == "reopened":
        return PullRequestReopened(repository_of(payload), sender_of(payload), pull.number("number"))
    head = pull.object("head")
    origin = head.optional_object("repo")
    if payload.text("action") == "edited":
        return _edited(payload, pull)
    if payload.text("action") == "closed":
        return PullRequestClosed(
            repository=repository_of(payload),
            sender=sender_of(payload),
            author=user_of(pull, "user"),
            number=pull.number("number"),
            title=pull.text("title"),
            body=pull.optional_text("body"),
            merged=pull.flag("merged"),
            merge_sha=pull.optional_text("merge_commit_sha") if pull.flag("merged") else "",
            head_ref=head.text("ref"),
            head_sha=head.text("sha"),
            head_repository_id=origin.number("id") if origin else None,
            at=pull.moment("closed_at"),
        )
    return PullRequestSynchronized(
        repository=repository_of(payload),
        sender=sender_of(payload),
        number=pull.number("number"),
        head_ref=head.text("ref"),
        head_repository_id=origin.number("id") if origin else None,
        before=payload.optional_text("before"),
        after=payload.optional_text("after") or head.text("sha"),
        at=pull.moment("updated_at"),
    )


def _edited(payload: Payload, pull: Payload) -> PullRequestRetargeted | Ignored:
    changes = payload.optional_object("changes")
    if changes is None or changes.optional_object("base") is None:
        return Ignored("an edited text asks nothing of acrouter")
    return PullRequestRetargeted(
        repository=repository_of(payload),
        sender=sender_of(payload),
        number=pull.number("number"),
        base_ref=pull.object("base").text("ref"),
    )


def read_pull_request_review(payload: Payload) -> ReviewSubmitted | Ignored:
    if ignored := other_action(payload, "submitted"):
        return ignored
    review = payload.object("review")
    return ReviewSubmitted(
        repository=repository_of(payload),
        sender=sender_of(payload),
        number=payload.object("pull_request").number("number"),
        review_id=review.number("id"),
        state=review.text("state").lower(),
        at=review.moment("submitted_at"),
    )
