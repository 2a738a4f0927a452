"""Numbers of a period: of the installation and of each model."""

from typing import Self

from pydantic import BaseModel, ConfigDict

from bot.dashboard import periods
from bot.dashboard.overview import Overview
from bot.dashboard.savings import Policy
from bot.dashboard.stats import ModelNumbers


class Read(BaseModel):
    """Read from an object whose attributes have the same names."""

    model_config = ConfigDict(from_attributes=True)


class ShareOut(Read):
    """Successes among cases, with Wilson's 95 % interval."""

    successes: int
    cases: int
    value: float | None
    low: float
    high: float


class IntervalOut(Read):
    value: float
    low: float
    high: float


class NumbersOut(Read):
    tasks: int
    at_work: int
    waiting: int
    merged: int
    success: ShareOut
    spend_usd: float
    usd_per_merged: float | None
    seconds_to_pr: float | None
    escalated: ShareOut


class ModelOut(Read):
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
        return cls.model_validate(row)


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
            success=IntervalOut.model_validate(policy.success),
            usd=IntervalOut.model_validate(policy.usd),
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
        saved = view.savings
        return cls(
            first_day=periods.iso(view.period.first),
            last_day=periods.iso(view.period.last),
            numbers=NumbersOut.model_validate(view.numbers),
            before=NumbersOut.model_validate(view.before),
            best_value=view.best.model if view.best else None,
            models=[ModelOut.of(row) for row in view.models],
            savings=saved
            and SavingsOut(
                method=saved.method,
                tasks=saved.tasks,
                acrouter=PolicyOut.of(saved.acrouter),
                best=PolicyOut.of(saved.best),
                saved_usd=IntervalOut.model_validate(saved.saved_usd),
                success_gain=IntervalOut.model_validate(saved.success_gain),
                regret=saved.regret,
            ),
        )
