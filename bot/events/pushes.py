"""Pushes to branches."""

from dataclasses import dataclass
from datetime import datetime

from bot.events.facts import Ignored, RepositoryFact, Sender, repository_of, sender_of
from bot.payload import Payload


@dataclass(frozen=True)
class Commit:
    sha: str
    message: str
    paths: frozenset[str] = frozenset()
    """What it adds, changes or removes, as far as GitHub lists it."""


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


def read_push(payload: Payload) -> Pushed | Ignored:
    ref = payload.text("ref")
    if not ref.startswith("refs/heads/"):
        return Ignored("a push of a tag")
    if payload.flag("deleted"):
        return Ignored("a branch was deleted")
    return Pushed(
        repository=repository_of(payload),
        sender=sender_of(payload),
        branch=ref.removeprefix("refs/heads/"),
        before=payload.text("before"),
        after=payload.text("after"),
        commits=tuple(map(_commit, payload.objects("commits"))),
        at=_pushed_at(payload),
    )


def _commit(commit: Payload) -> Commit:
    paths = frozenset().union(*(commit.texts(kind) for kind in ("added", "modified", "removed")))
    return Commit(commit.text("id"), commit.optional_text("message"), paths)


def _pushed_at(payload: Payload) -> datetime:
    """The time of a push; a commit's own, which is its author's clock, only where GitHub gives none."""
    repository, head = payload.object("repository"), payload.optional_object("head_commit")
    if repository.data.get("pushed_at") is None and head is not None:
        return head.moment("timestamp")
    return repository.moment("pushed_at")
