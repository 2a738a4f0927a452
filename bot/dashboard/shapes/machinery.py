"""Caps, and what the machinery does."""

from collections.abc import Mapping, Sequence
from typing import Self

from pydantic import BaseModel

from bot.dashboard.caps import CapView
from bot.dashboard.money import Forecast
from bot.dashboard.shapes.numbers import Read
from workers.limits import Limit


class CapOut(BaseModel):
    """A cap on all tasks together."""

    name: str
    limit_usd: float
    setting_usd: float | None
    changed_by: str
    used_usd: float
    reserved_usd: float

    @classmethod
    def of(cls, cap: CapView, limit: Limit) -> Self:
        return cls(
            name=cap.name,
            limit_usd=cap.limit_usd,
            setting_usd=limit.setting_usd,
            changed_by=limit.set_by,
            used_usd=cap.used_usd,
            reserved_usd=cap.reserved_usd,
        )


class LimitedOut(Read):
    """A cap on one organisation, repository or person."""

    scope: str
    whose: str
    name: str
    limit_usd: float
    used_usd: float
    reserved_usd: float
    raised_by: str
    """Who can raise it, and where."""


class BudgetsOut(BaseModel):
    caps: list[CapOut]
    limited: list[LimitedOut]
    """Of organisations, repositories and people, the most used first."""
    month_forecast_usd: float
    mean_day_usd: float

    @classmethod
    def made(
        cls, caps: Sequence[CapView], limited: Sequence[CapView], limits: Mapping[str, Limit], forecast: Forecast
    ) -> Self:
        return cls(
            caps=[CapOut.of(cap, limits[cap.name]) for cap in caps],
            limited=[LimitedOut.model_validate(cap) for cap in limited],
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
