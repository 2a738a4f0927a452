"""What the local GitHub remembers, in memory."""

import secrets
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any, Literal

from bot.demo.hub.actions import ActionsStore
from bot.demo.hub.git import BareRepository, Commit

Permission = Literal["admin", "write", "read", "none"]


def now() -> str:
    """Return the time as GitHub writes it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True)
class User:
    id: int
    login: str
    kind: Literal["User", "Bot"] = "User"


@dataclass(frozen=True)
class Label:
    id: int
    name: str
    color: str = "ededed"
    description: str = ""


@dataclass
class Comment:
    id: int
    number: int
    author: User
    body: str
    created_at: str = field(default_factory=now)
    updated_at: str = field(default_factory=now)


@dataclass
class Review:
    id: int
    author: User
    state: Literal["APPROVED", "CHANGES_REQUESTED", "COMMENTED"]
    body: str
    commit_sha: str
    submitted_at: str = field(default_factory=now)


@dataclass
class Pull:
    head_ref: str
    head_sha: str
    base_ref: str
    base_sha: str
    draft: bool = False
    merged_at: str | None = None
    merged_by: User | None = None
    merge_sha: str | None = None
    reviews: list[Review] = field(default_factory=list)


@dataclass
class Issue:
    """An issue, or a pull request where `pull` is set: both are numbered together."""

    id: int
    number: int
    title: str
    body: str
    author: User
    state: Literal["open", "closed"] = "open"
    labels: list[Label] = field(default_factory=list)
    comments: list[Comment] = field(default_factory=list)
    created_at: str = field(default_factory=now)
    updated_at: str = field(default_factory=now)
    closed_at: str | None = None
    pull: Pull | None = None


@dataclass
class CheckRun:
    id: int
    name: str
    head_sha: str
    status: str = "queued"
    conclusion: str | None = None
    external_id: str = ""
    details_url: str | None = None
    started_at: str | None = None
    completed_at: str | None = None
    output: Mapping[str, Any] = field(default_factory=dict)


@dataclass
class Repository:
    id: int
    owner: User
    name: str
    bare: BareRepository
    created_at: str = field(default_factory=now)
    issues: dict[int, Issue] = field(default_factory=dict)
    labels: dict[str, Label] = field(default_factory=dict)
    check_runs: dict[int, CheckRun] = field(default_factory=dict)
    collaborators: dict[str, Permission] = field(default_factory=dict)
    actions: ActionsStore = field(default_factory=ActionsStore)

    @property
    def full_name(self) -> str:
        return f"{self.owner.login}/{self.name}"

    def pulls(self) -> list[Issue]:
        return [issue for issue in self.issues.values() if issue.pull]

    def commit(self, ref: str) -> Commit | None:
        sha = self.bare.resolve(ref)
        return self.bare.commit(sha) if sha else None


@dataclass(frozen=True)
class Token:
    """An installation token: what it may do, where, and until when."""

    value: str
    permissions: Mapping[str, str]
    repository_ids: frozenset[int] | None
    """None: every repository."""
    expires_at: datetime

    def allows(self, permission: str, *, write: bool, repository_id: int | None = None) -> bool:
        if datetime.now(UTC) >= self.expires_at:
            return False
        if repository_id is not None and self.repository_ids is not None and repository_id not in self.repository_ids:
            return False
        granted = self.permissions.get(permission)
        return granted == "write" or (granted == "read" and not write)


@dataclass
class State:
    """Everything; whoever changes it holds `lock`."""

    app_id: int
    slug: str
    installation_id: int
    permissions: Mapping[str, str]
    users: dict[str, User] = field(default_factory=dict)
    repositories: dict[str, Repository] = field(default_factory=dict)
    tokens: dict[str, Token] = field(default_factory=dict)
    created_at: str = field(default_factory=now)
    lock: threading.RLock = field(default_factory=threading.RLock)
    _ids: "count[int]" = field(default_factory=lambda: count(1001))

    def next_id(self) -> int:
        return next(self._ids)

    @property
    def bot(self) -> User:
        return self.user(f"{self.slug}[bot]", "Bot")

    def user(self, login: str, kind: Literal["User", "Bot"] = "User") -> User:
        """Return a user, made at first sight."""
        return self.users.setdefault(login.lower(), User(self.next_id(), login, kind))

    def repository(self, full_name: str) -> Repository | None:
        return self.repositories.get(full_name.lower())

    def label(self, repository: Repository, name: str) -> Label:
        """Return a repository's label, made at first sight."""
        return repository.labels.setdefault(name.lower(), Label(self.next_id(), name))

    def mint(self, permissions: Mapping[str, str], repository_ids: frozenset[int] | None) -> Token:
        expires_at = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1)
        token = Token(f"ghs_{secrets.token_urlsafe(27)}", permissions, repository_ids, expires_at)
        self.tokens[token.value] = token
        return token
