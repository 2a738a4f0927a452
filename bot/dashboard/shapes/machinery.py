"""Caps, and what the machinery does."""

from typing import Self

from pydantic import BaseModel

from bot.dashboard.money import CapView, Forecast


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
