"""What the JSON API answers with. Times are ISO 8601 in UTC, money is in US dollars."""

from datetime import datetime
from typing import Any, Self

from pydantic import BaseModel

from bot.dashboard import periods
from bot.dashboard.intervals import Interval, Share
from bot.dashboard.money import CapView, Forecast
from bot.dashboard.overview import Overview
from bot.dashboard.savings import Policy, Savings
from bot.dashboard.stats import ModelNumbers, Numbers
from bot.dashboard.task_detail import AttemptDetail, TaskDetail
from bot.dashboard.task_list import TaskLine
from store.tables import Decision


class ShareOut(BaseModel):
    """Successes among cases, with Wilson's 95 % interval."""

    successes: int
    cases: int
    value: float | None
    low: float
    high: float

    @classmethod
    def of(cls, share: Share) -> Self:
        return cls(successes=share.successes, cases=share.cases, value=share.value, low=share.low, high=share.high)


class IntervalOut(BaseModel):
    value: float
    low: float
    high: float

    @classmethod
    def of(cls, interval: Interval) -> Self:
        return cls(value=interval.value, low=interval.low, high=interval.high)


class NumbersOut(BaseModel):
    tasks: int
    at_work: int
    waiting: int
    merged: int
    success: ShareOut
    spend_usd: float
    usd_per_merged: float | None
    seconds_to_pr: float | None
    escalated: ShareOut

    @classmethod
    def of(cls, numbers: Numbers) -> Self:
        return cls(
            tasks=numbers.tasks,
            at_work=numbers.at_work,
            waiting=numbers.waiting,
            merged=numbers.merged,
            success=ShareOut.of(numbers.success),
            spend_usd=numbers.spend_usd,
            usd_per_merged=numbers.usd_per_merged,
            seconds_to_pr=numbers.seconds_to_pr,
            escalated=ShareOut.of(numbers.escalated),
        )


class ModelOut(BaseModel):
    model: str
    chosen: ShareOut
    attempts: int
    waiting: int
    unusable: int
    escalated: int
    success: ShareOut
    spend_usd: float
    usd_per_attempt: float | None
    usd_per_merged: float | None
    seconds: float | None
    moved: IntervalOut | None
    drifts: bool

    @classmethod
    def of(cls, row: ModelNumbers) -> Self:
        return cls(
            model=row.model,
            chosen=ShareOut.of(row.chosen),
            attempts=row.attempts,
            waiting=row.waiting,
            unusable=row.unusable,
            escalated=row.escalated,
            success=ShareOut.of(row.success),
            spend_usd=row.spend_usd,
            usd_per_attempt=row.usd_per_attempt,
            usd_per_merged=row.usd_per_merged,
            seconds=row.seconds,
            moved=IntervalOut.of(row.moved) if row.moved else None,
            drifts=row.drifts,
        )


class PolicyOut(BaseModel):
    name: str
    success: IntervalOut
    usd: IntervalOut
    reward: float
    effective_tasks: float

    @classmethod
    def of(cls, policy: Policy) -> Self:
        return cls(
            name=policy.name,
            success=IntervalOut.of(policy.success),
            usd=IntervalOut.of(policy.usd),
            reward=policy.reward,
            effective_tasks=policy.tasks,
        )


class SavingsOut(BaseModel):
    method: str
    tasks: int
    acrouter: PolicyOut
    best: PolicyOut
    saved_usd: IntervalOut
    success_gain: IntervalOut
    regret: float

    @classmethod
    def of(cls, savings: Savings) -> Self:
        return cls(
            method=savings.method,
            tasks=savings.tasks,
            acrouter=PolicyOut.of(savings.acrouter),
            best=PolicyOut.of(savings.best),
            saved_usd=IntervalOut.of(savings.saved_usd),
            success_gain=IntervalOut.of(savings.success_gain),
            regret=savings.regret,
        )


class OverviewOut(BaseModel):
    first_day: str
    last_day: str
    numbers: NumbersOut
    before: NumbersOut
    best_value: str | None
    models: list[ModelOut]
    savings: SavingsOut | None

    @classmethod
    def of(cls, view: Overview) -> Self:
        return cls(
            first_day=periods.iso(view.period.first),
            last_day=periods.iso(view.period.last),
            numbers=NumbersOut.of(view.numbers),
            before=NumbersOut.of(view.before),
            best_value=view.best.model if view.best else None,
            models=[ModelOut.of(row) for row in view.models],
            savings=SavingsOut.of(view.savings) if view.savings else None,
        )


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


class CapOut(BaseModel):
    name: str
    limit_usd: float
    setting_usd: float
    changed_by: str
    used_usd: float
    reserved_usd: float

    @classmethod
    def of(cls, cap: CapView) -> Self:
        return cls(**vars(cap))


class BudgetsOut(BaseModel):
    caps: list[CapOut]
    month_forecast_usd: float
    mean_day_usd: float

    @classmethod
    def made(cls, caps: list[CapView], forecast: Forecast) -> Self:
        return cls(
            caps=[CapOut.of(cap) for cap in caps],
            month_forecast_usd=forecast.month_usd,
            mean_day_usd=forecast.a_day_usd,
        )


class QueueOut(BaseModel):
    open_tasks: dict[str, int]
    lag_s: float
    deliveries_one_day: dict[str, int]
    workers_alive: int
    failed_tasks: int
    failed_deliveries: int
