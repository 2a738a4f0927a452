"""What was decided and done for a task, and what became of it."""

from datetime import datetime
from typing import Any

from sqlalchemy import Index, Text, UniqueConstraint
from sqlmodel import Field, SQLModel

from store.states import AttemptState, OutcomeKind
from store.tables.columns import Json, RowId, id_column, moment_column
from store.types import EnumText, UtcDateTime


class Decision(SQLModel, table=True):
    """What the orchestrator answered, with all that is needed to judge it later."""

    __table_args__ = (Index("ix_decision_facts", "task_id", "id", "chosen", "propensity"),)

    id: int | None = id_column()
    task_id: int = Field(foreign_key="task.id", sa_type=RowId, index=True)
    at: datetime = moment_column()
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

    id: int | None = id_column()
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
    started_at: datetime = moment_column()
    finished_at: datetime | None = Field(default=None, sa_type=UtcDateTime)


class Verification(SQLModel, table=True):
    """The verdict on one attempt's patch."""

    id: int | None = id_column()
    attempt_id: int = Field(foreign_key="attempt.id", sa_type=RowId, unique=True)
    at: datetime = moment_column()
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

    id: int | None = id_column()
    task_id: int = Field(foreign_key="task.id", sa_type=RowId, index=True)
    kind: OutcomeKind = Field(sa_type=EnumText(OutcomeKind))
    ref: str = Field(default="", max_length=200)
    at: datetime = Field(sa_type=UtcDateTime)
    """When it happened at GitHub, not when we heard of it."""
    recorded_at: datetime = moment_column()
    data: dict[str, Any] = Field(default_factory=dict, sa_type=Json)
