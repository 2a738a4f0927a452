"""Tasks: a line of a list, and one with everything."""

from datetime import datetime
from typing import Any, Self

from pydantic import BaseModel

from bot.dashboard import periods
from bot.dashboard.task_detail import AttemptDetail, TaskDetail
from bot.dashboard.task_list import TaskLine
from store.tables import Decision


class TaskOut(BaseModel):
    id: int
    title: str
    repository: str
    kind: str
    trigger: str
    person: str
    dimension: str
    state: str
    reverted: bool
    model: str
    attempts: int
    cost_usd: float
    created_at: datetime
    seconds: float | None
    target_number: int | None
    pr_number: int | None
    pr_url: str

    @classmethod
    def of(cls, line: TaskLine) -> Self:
        values = {**vars(line), "created_at": periods.moment(line.created), "state": str(line.state)}
        values.pop("created")
        return cls(**values)


class TasksOut(BaseModel):
    total: int
    tasks: list[TaskOut]
    next_before: int | None
    """Give it as `before` for the next page."""


class DecisionOut(BaseModel):
    at: datetime
    chosen: str
    propensity: float
    ranked: list[dict[str, Any]]
    votes: list[dict[str, Any]]
    reasons: list[str]
    neighbours: list[dict[str, Any]]
    """Those of repositories that the reader can read."""

    @classmethod
    def of(cls, row: Decision, names: frozenset[str]) -> Self:
        return cls(
            at=row.at,
            chosen=row.chosen,
            propensity=row.propensity,
            ranked=row.ranked,
            votes=row.votes,
            reasons=row.reasons,
            neighbours=[near for near in row.neighbours if near.get("repository") in names],
        )


class AttemptOut(BaseModel):
    number: int
    model: str
    state: str
    exit_status: str
    steps: int
    tokens_in: int
    tokens_out: int
    cost_usd: float
    score: float | None
    verdict: str | None
    summary: str
    fixed_tests: list[str]
    broken_tests: list[str]
    started_at: datetime
    finished_at: datetime | None

    @classmethod
    def of(cls, attempt: AttemptDetail) -> Self:
        row, judged = attempt.row, attempt.verification
        names = ("number", "model", "exit_status", "steps", "tokens_in", "tokens_out", "cost_usd", "score")
        return cls(
            **{name: row[name] for name in (*names, "started_at", "finished_at")},
            state=str(row["state"]),
            verdict=judged.verdict if judged else None,
            summary=judged.summary if judged else "",
            fixed_tests=list(judged.tests.get("fail_to_pass") or []) if judged else [],
            broken_tests=list(judged.tests.get("pass_to_fail") or []) if judged else [],
        )


class EventOut(BaseModel):
    at: datetime
    state: str
    message: str


class TaskDetailOut(BaseModel):
    id: int
    title: str
    repository: str
    state: str
    reason: str
    requested_by: str
    dimension: str
    budget_usd: float
    spent_usd: float
    pr_url: str
    created_at: datetime
    finished_at: datetime | None
    published_attempt: int | None
    decisions: list[DecisionOut]
    attempts: list[AttemptOut]
    history: list[EventOut]
    outcomes: list[str]

    @classmethod
    def of(cls, task: TaskDetail, names: frozenset[str]) -> Self:
        row = task.row
        published = [one.row["number"] for one in task.attempts if one.row["id"] == row["published_attempt_id"]]
        copied = ("id", "reason", "requested_by", "dimension", "budget_usd", "pr_url", "created_at", "finished_at")
        return cls(
            **{name: row[name] for name in copied},
            title=task.title,
            repository=task.repository,
            state=str(row["state"]),
            spent_usd=task.spent_usd,
            published_attempt=published[0] if published else None,
            decisions=[DecisionOut.of(one, names) for one in task.decisions],
            attempts=[AttemptOut.of(one) for one in task.attempts],
            history=[EventOut(at=one.at, state=str(one.state), message=one.message) for one in task.history],
            outcomes=[str(one.kind) for one in task.outcomes],
        )
