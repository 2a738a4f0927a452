"""The tables. The database is the truth: Redis, FAISS, containers and Celery's state are rebuilt from it.

Money in `ledger` is a whole number of micro-dollars, rounded up; times are aware UTC datetimes.
"""

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, BigInteger, Column, Index, Integer, LargeBinary, Text, UniqueConstraint
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from store.states import (
    AttemptState,
    DeliveryState,
    LedgerKind,
    OutcomeKind,
    TaskKind,
    TaskState,
    Trigger,
)
from store.types import EnumText, PackedJson, UtcDateTime, utc_now

Json = JSON().with_variant(JSONB(), "postgresql")
# SQLite numbers rows by itself only in a column of exactly this type.
RowId = BigInteger().with_variant(Integer(), "sqlite")


def _id() -> Any:
    return Field(default=None, primary_key=True, sa_type=RowId)


def _now() -> Any:
    return Field(default_factory=utc_now, sa_type=UtcDateTime)


class Delivery(SQLModel, table=True):
    """The inbox: one row for each `X-GitHub-Delivery`, stored before the webhook is acknowledged."""

    __table_args__ = (Index("ix_delivery_received_at", "received_at", "state"),)

    id: int | None = _id()
    guid: str = Field(unique=True, max_length=100)
    event: str = Field(max_length=100)
    action: str = Field(default="", max_length=100)
    payload: bytes = Field(sa_column=Column(PackedJson, nullable=False))
    """The raw body, as signed."""
    received_at: datetime = _now()
    state: DeliveryState = Field(default=DeliveryState.RECEIVED, sa_type=EnumText(DeliveryState), index=True)
    reason: str = Field(default="", sa_type=Text)
    """Why it was ignored, or what failed."""
    tries: int = 0
    not_before: datetime | None = Field(default=None, sa_type=UtcDateTime)
    """A process works on it until then, or GitHub asked to wait."""
    handled_at: datetime | None = Field(default=None, sa_type=UtcDateTime)


class Installation(SQLModel, table=True):
    """An account that installed the App. The id is GitHub's."""

    id: int = Field(primary_key=True, sa_type=BigInteger)
    account: str = Field(max_length=200)
    suspended: bool = False
    removed: bool = False
    updated_at: datetime = _now()


class Repository(SQLModel, table=True):
    """A repository that an installation covers. The id is GitHub's."""

    id: int = Field(primary_key=True, sa_type=BigInteger)
    installation_id: int = Field(foreign_key="installation.id", sa_type=BigInteger, index=True)
    full_name: str = Field(max_length=300, index=True)
    default_branch: str = Field(default="", max_length=300)
    private: bool = False
    active: bool = True
    onboarding_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    """When it was offered a configuration, or found to need none; None: not yet."""
    updated_at: datetime = _now()


class Sweep(SQLModel, table=True):
    """When each of the regular looks at GitHub is due; one process at a time takes one."""

    name: str = Field(primary_key=True, max_length=50)
    due_at: datetime = Field(sa_type=UtcDateTime)
    done_until: datetime | None = Field(default=None, sa_type=UtcDateTime)
    """Everything up to here has been looked at."""


class ConfigurationFile(SQLModel, table=True):
    """The last valid `.acrouter.yml` of a repository's default branch: it stays in force while a newer one is wrong."""

    repository_id: int = Field(primary_key=True, foreign_key="repository.id", sa_type=BigInteger)
    text: str = Field(sa_type=Text)
    updated_at: datetime = _now()


class Task(SQLModel, table=True):
    """One piece of work on one target."""

    __table_args__ = (
        Index("ix_task_updated_at", "updated_at"),
        # The dashboard's numbers: read without the rows, whose texts can be megabytes.
        Index(
            "ix_task_facts",
            *("id", "repository_id", "kind", "trigger", "requested_by", "dimension", "pinned_model", "state"),
            *("published_attempt_id", "created_at", "updated_at", "finished_at"),
        ),
    )

    id: int | None = _id()
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
    ci_run_id: int | None = Field(default=None, sa_type=BigInteger)
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
    pr_number: int | None = Field(default=None, index=True)
    pr_url: str = Field(default="", max_length=500)
    status_comment_id: int | None = Field(default=None, sa_type=BigInteger)
    check_run_id: int | None = Field(default=None, sa_type=BigInteger)
    created_at: datetime = _now()
    updated_at: datetime = _now()
    finished_at: datetime | None = Field(default=None, sa_type=UtcDateTime)


class History(SQLModel, table=True):
    """Every change of a task's state and every step worth telling, append-only."""

    id: int | None = _id()
    task_id: int = Field(foreign_key="task.id", sa_type=RowId, index=True)
    at: datetime = _now()
    state: TaskState = Field(sa_type=EnumText(TaskState))
    message: str = Field(sa_type=Text)
    data: dict[str, Any] = Field(default_factory=dict, sa_type=Json)


class Decision(SQLModel, table=True):
    """What the orchestrator answered, with all that is needed to judge it later."""

    __table_args__ = (Index("ix_decision_facts", "task_id", "id", "chosen", "propensity"),)

    id: int | None = _id()
    task_id: int = Field(foreign_key="task.id", sa_type=RowId, index=True)
    at: datetime = _now()
    ranked: list[dict[str, Any]] = Field(default_factory=list, sa_type=Json)
    """Models in the order of the plan: model, share, propensity, expected score, expected cost."""
    chosen: str = Field(max_length=200)
    propensity: float
    votes: list[dict[str, Any]] = Field(default_factory=list, sa_type=Json)
    """voter, weight, shares per model, confidence, reason; abstentions too."""
    neighbours: list[dict[str, Any]] = Field(default_factory=list, sa_type=Json)
    reasons: list[str] = Field(default_factory=list, sa_type=Json)
    data: dict[str, Any] = Field(default_factory=dict, sa_type=Json)


class Attempt(SQLModel, table=True):
    """One model's work on one task."""

    __table_args__ = (
        UniqueConstraint("task_id", "number"),
        Index(
            "ix_attempt_facts",
            *("task_id", "number", "id", "model", "state", "score", "cost_usd", "steps", "started_at", "finished_at"),
        ),
    )

    id: int | None = _id()
    task_id: int = Field(foreign_key="task.id", sa_type=RowId, index=True)
    decision_id: int = Field(foreign_key="decision.id", sa_type=RowId)
    number: int
    """1 for the first, counting up with each escalation."""
    model: str = Field(max_length=200, index=True)
    state: AttemptState = Field(default=AttemptState.RUNNING, sa_type=EnumText(AttemptState))
    exit_status: str = Field(default="", max_length=100)
    """How the agent ended: Submitted, LimitsExceeded, RepeatedFormatError, ..."""
    error: str = Field(default="", sa_type=Text)
    steps: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost_usd: float = 0.0
    patch: str = Field(default="", sa_type=Text)
    trajectory: dict[str, Any] = Field(default_factory=dict, sa_type=Json)
    """mini-swe-agent's format, scrubbed of secrets."""
    score: float | None = None
    started_at: datetime = _now()
    finished_at: datetime | None = Field(default=None, sa_type=UtcDateTime)


class Verification(SQLModel, table=True):
    """The verdict on one attempt's patch."""

    id: int | None = _id()
    attempt_id: int = Field(foreign_key="attempt.id", sa_type=RowId, unique=True)
    at: datetime = _now()
    score: float
    verdict: str = Field(max_length=50)
    """verified, unverified, breaking, rejected or empty."""
    summary: str = Field(default="", sa_type=Text)
    signals: list[dict[str, Any]] = Field(default_factory=list, sa_type=Json)
    """name, value in [0, 1] or null where missing, weight, evidence."""
    tests: dict[str, Any] = Field(default_factory=dict, sa_type=Json)
    """command, before and after counts, fail_to_pass, pass_to_fail."""


class Outcome(SQLModel, table=True):
    """What became of a task's PR. `ref` tells two outcomes of one kind apart, so that each counts once."""

    __table_args__ = (UniqueConstraint("task_id", "kind", "ref"), Index("ix_outcome_kind", "kind", "task_id"))

    id: int | None = _id()
    task_id: int = Field(foreign_key="task.id", sa_type=RowId, index=True)
    kind: OutcomeKind = Field(sa_type=EnumText(OutcomeKind))
    ref: str = Field(default="", max_length=200)
    at: datetime = Field(sa_type=UtcDateTime)
    """When it happened at GitHub, not when we heard of it."""
    recorded_at: datetime = _now()
    data: dict[str, Any] = Field(default_factory=dict, sa_type=Json)


class MemoryEntry(SQLModel, table=True):
    """What the router knows of one attempt; one row each, its score replaced when an outcome arrives."""

    __table_args__ = (
        Index("ix_memoryentry_revision", "revision"),
        Index("ix_memoryentry_beliefs", "model", "dimension", "final", "score", "cost_usd"),
    )

    id: int | None = _id()
    key: str = Field(unique=True, max_length=100)
    """`attempt:ID`, or whatever a user of the library names its evidence."""
    task_key: str = Field(max_length=100, index=True)
    repository: str = Field(default="", max_length=300)
    dimension: str = Field(default="", max_length=50)
    language: str = Field(default="", max_length=50)
    title: str = Field(default="", sa_type=Text)
    link: str = Field(default="", max_length=500)
    text: str = Field(default="", sa_type=Text)
    """What was embedded: kept so that another encoder can embed it again."""
    encoder: str = Field(default="", max_length=200)
    embedding: bytes | None = Field(default=None, sa_column=Column(LargeBinary, nullable=True))
    """float32, little endian, normalised."""
    model: str = Field(max_length=200, index=True)
    score: float
    cost_usd: float
    final: bool = False
    """True once an outcome has replaced the verifier's score."""
    verifier_score: float | None = None
    """What the verifier had said; kept beside the outcome, so that it can be held against it."""
    views: dict[str, float] = Field(default_factory=dict, sa_type=Json)
    """What each voter had believed of this model on this task."""
    namings: dict[str, float] = Field(default_factory=dict, sa_type=Json)
    """Of voters without beliefs: the share that each had given this model, over an even split."""
    traits: list[float] = Field(default_factory=list, sa_type=Json)
    """What was counted in the text (`routing.contexts`)."""
    revision: int = Field(default=0, sa_type=BigInteger)
    """Raised by every write; processes catch up by it."""
    created_at: datetime = _now()
    updated_at: datetime = _now()


class Ledger(SQLModel, table=True):
    """Money reserved and settled, append-only. What counts against a cap: settled, assumed, and open reservations."""

    __table_args__ = (
        UniqueConstraint("reservation", "closing"),
        Index("ix_ledger_facts", "at", "closing", "usd_micros", "model", "repository_id", "task_id"),
    )

    id: int | None = _id()
    reservation: str = Field(max_length=64)
    """The same for a reservation and the row that ends it."""
    closing: bool = False
    """False for the reservation, True for its end: each can be there once."""
    kind: LedgerKind = Field(sa_type=EnumText(LedgerKind))
    usd_micros: int = Field(sa_type=BigInteger)
    task_id: int = Field(foreign_key="task.id", sa_type=RowId, index=True)
    attempt_id: int | None = Field(default=None, foreign_key="attempt.id", sa_type=RowId)
    repository_id: int | None = Field(default=None, sa_type=BigInteger, index=True)
    model: str = Field(default="", max_length=200)
    at: datetime = Field(default_factory=utc_now, sa_type=UtcDateTime, index=True)


class ModelEndpoint(SQLModel, table=True):
    """The circuit breaker of a model's endpoint (`workers.breakers`); of one whose last attempt it answered, no row."""

    model: str = Field(primary_key=True, max_length=200)
    failures: int = 0
    """In a row; those of one outage count up to the breaker's opening."""
    failed_at: datetime = Field(sa_type=UtcDateTime)
    """The last one that counted."""
    retry_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    """The model is passed over until then. None: it has not failed often enough."""
    error: str = Field(default="", sa_type=Text)
    """Of the last failure."""


class Heartbeat(SQLModel, table=True):
    """The processes that are alive: workers and schedulers."""

    name: str = Field(primary_key=True, max_length=200)
    role: str = Field(max_length=50)
    seen_at: datetime = _now()


class CapOverride(SQLModel, table=True):
    """A cap that a person changed on the dashboard; it stands in place of the setting until it is removed."""

    name: str = Field(primary_key=True, max_length=50)
    """As in the setting: `day` for ACROUTER_DAY_BUDGET_USD, `organisation_month` (`workers.limits`)."""
    limit_micros: int = Field(sa_type=BigInteger)
    set_by: str = Field(max_length=200)
    at: datetime = _now()


class AuditEntry(SQLModel, table=True):
    """What a person changed or started through the dashboard or the command line, append-only."""

    __table_args__ = (Index("ix_auditentry_at", "at"),)

    id: int | None = _id()
    at: datetime = _now()
    actor: str = Field(max_length=200)
    """A GitHub login, `localhost` for the one-time link, or `command line`."""
    action: str = Field(max_length=100)
    target: str = Field(default="", max_length=400)
    data: dict[str, Any] = Field(default_factory=dict, sa_type=Json)


class DashboardSession(SQLModel, table=True):
    """Somebody who signed in to the dashboard. The browser holds the id, signed."""

    id: str = Field(primary_key=True, max_length=64)
    """SHA-256 of the secret in the cookie: who reads the database cannot sign in with it."""
    login: str = Field(max_length=200)
    role: str = Field(max_length=20)
    """viewer, operator or admin."""
    repositories: list[int] | None = Field(default=None, sa_type=Json)
    """Ids of the repositories that the person can read on GitHub; None: all of them."""
    sealed_token: str = Field(default="", sa_type=Text)
    """The person's GitHub token, encrypted, by which the rights are asked for again."""
    checked_at: datetime = _now()
    created_at: datetime = _now()
    expires_at: datetime = Field(sa_type=UtcDateTime, index=True)


class ApiToken(SQLModel, table=True):
    """A token for the JSON API or for the metrics, or a one-time link to sign in; the token itself is not kept."""

    id: int | None = _id()
    name: str = Field(max_length=100)
    digest: str = Field(unique=True, max_length=64)
    """SHA-256 of the token."""
    scopes: str = Field(max_length=200)
    """Words with a space between: read, metrics, sign-in."""
    created_at: datetime = _now()
    expires_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    used_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
