"""Tasks and what happened to each."""

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Index, Text
from sqlmodel import Field, SQLModel

from store.states import TaskKind, TaskState, Trigger
from store.tables.columns import Json, RowId, id_column, moment_column
from store.types import EnumText, UtcDateTime


class Task(SQLModel, table=True):
    """One piece of work on one target."""

    __table_args__ = (
        Index("ix_task_updated_at", "updated_at"),
        # What the events of a repository tell of.
        Index("ix_task_target_number", "repository_id", "target_number"),
        Index("ix_task_pull_request", "repository_id", "pr_number"),
        Index("ix_task_branch", "repository_id", "branch"),
        # The dashboard's numbers: read without the rows, whose texts can be megabytes.
        Index(
            "ix_task_facts",
            *("id", "repository_id", "kind", "trigger", "requested_by", "dimension", "pinned_model", "state"),
            *("published_attempt_id", "created_at", "updated_at", "finished_at"),
        ),
    )

    id: int | None = id_column()
    repository_id: int | None = Field(default=None, foreign_key="repository.id", sa_type=BigInteger, index=True)
    """None for a local repository."""
    kind: TaskKind = Field(sa_type=EnumText(TaskKind))
    trigger: Trigger = Field(sa_type=EnumText(Trigger))
    target: str = Field(max_length=400, index=True)
    """What the task is about, one running task each: `42/issues/7`, `42/pull/9`, `42/branch/main`."""
    target_number: int | None = None
    """The issue or PR that gets the words; None where there is none (CI on a branch, a local task)."""
    requested_by: str = Field(default="", max_length=200)
    delivery_guid: str | None = Field(default=None, unique=True, max_length=100)
    """The delivery that started it: the same one cannot start a second."""
    trigger_key: str | None = Field(default=None, unique=True, max_length=200)
    """Names what started it, e.g. one comment: told by a second webhook, it starts no second task."""
    title: str = Field(default="", sa_type=Text)
    text: str = Field(default="", sa_type=Text)
    """Untrusted: the issue, the PR or the failing log, as fetched."""
    dimension: str = Field(default="", max_length=50)
    language: str = Field(default="", max_length=50)
    base_ref: str = Field(default="", max_length=300)
    """The branch that a PR goes to."""
    base_sha: str = Field(default="", max_length=64)
    """The commit that the work starts from, pinned at the trigger where the event names one."""
    ci_run_id: int | None = Field(default=None, sa_type=BigInteger, index=True)
    hint: str = Field(default="", sa_type=Text)
    pinned_model: str = Field(default="", max_length=200)
    budget_usd: float = 0.0
    state: TaskState = Field(default=TaskState.QUEUED, sa_type=EnumText(TaskState), index=True)
    reason: str = Field(default="", sa_type=Text)
    """Why it is in its state, in words for people."""
    stop_requested_by: str = Field(default="", max_length=200)
    lease_owner: str = Field(default="", max_length=200)
    lease_until: datetime | None = Field(default=None, sa_type=UtcDateTime, index=True)
    not_before: datetime | None = Field(default=None, sa_type=UtcDateTime)
    """A queued task waits until then, e.g. for the end of a rate limit."""
    waiting_since: datetime | None = Field(default=None, sa_type=UtcDateTime)
    """When something outside began to keep it from being worked on: GitHub, or the models' endpoints. None: nothing
    does."""
    tries: int = 0
    """How often a worker took it; a task that keeps killing its worker is given up."""
    report_due: bool = Field(default=True, index=True)
    """What people see on the target is older than the task's state."""
    report_not_before: datetime | None = Field(default=None, sa_type=UtcDateTime)
    """A process writes to the target until then, or GitHub asked to wait."""
    report_tries: int = 0
    """How often GitHub refused a part of the newest words; after a few they are given up."""
    published_attempt_id: int | None = Field(default=None, sa_type=RowId)
    branch: str = Field(default="", max_length=300)
    parent_sha: str = Field(default="", max_length=64)
    """What the commit of its own branch stands on, chosen once: `base_sha`, or a later one of the base branch. Empty:
    not chosen, or the commit stands on `base_sha`."""
    head_sha: str = Field(default="", max_length=64)
    """The commit that was pushed."""
    pr_number: int | None = None
    pr_url: str = Field(default="", max_length=500)
    status_comment_id: int | None = Field(default=None, sa_type=BigInteger)
    check_run_id: int | None = Field(default=None, sa_type=BigInteger)
    created_at: datetime = moment_column()
    updated_at: datetime = moment_column()
    finished_at: datetime | None = Field(default=None, sa_type=UtcDateTime)


class History(SQLModel, table=True):
    """Every change of a task's state and every step worth telling, append-only."""

    id: int | None = id_column()
    task_id: int = Field(foreign_key="task.id", sa_type=RowId, index=True)
    at: datetime = moment_column()
    state: TaskState = Field(sa_type=EnumText(TaskState))
    message: str = Field(sa_type=Text)
    data: dict[str, Any] = Field(default_factory=dict, sa_type=Json)
