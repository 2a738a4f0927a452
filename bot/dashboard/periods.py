"""Periods: whole days in UTC, the last of them today as far as it has come."""

import time
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from bot.dashboard.errors import BadRequestError
from bot.dashboard.facts import DAY_S

LENGTHS = (7, 30, 90, 365)
DEFAULT_DAYS = 30
_EPOCH = date(1970, 1, 1)


@dataclass(frozen=True)
class Period:
    """Days since 1970 in UTC: `first` and `last` belong to it."""

    first: int
    last: int

    @property
    def days(self) -> int:
        return self.last - self.first + 1

    @property
    def start(self) -> float:
        """Seconds since 1970 at its start."""
        return float(self.first * DAY_S)

    @property
    def end(self) -> float:
        """Seconds since 1970 at its end, which is not in it."""
        return float((self.last + 1) * DAY_S)

    def before(self) -> "Period":
        """Return the period of the same length before this one."""
        return Period(self.first - self.days, self.first - 1)

    def words(self) -> str:
        return f"{iso(self.first)} to {iso(self.last)}"


def of_days(days: int, now: float | None = None) -> Period:
    """Return the last `days` days, today included.

    Raises:
        BadRequestError: it is none of the lengths that are offered.
    """
    if days not in LENGTHS:
        raise BadRequestError(f"days: {days} is not offered. Choose one of {', '.join(map(str, LENGTHS))}.")
    today = int((time.time() if now is None else now) // DAY_S)
    return Period(today - days + 1, today)


def iso(day: int) -> str:
    """Return a day since 1970 as 2026-11-29."""
    return (_EPOCH + timedelta(days=day)).isoformat()


def moment(seconds: float) -> datetime:
    """Return seconds since 1970 as an aware datetime."""
    return datetime.fromtimestamp(seconds, UTC)


def day_of(text: str) -> int:
    """Return the day since 1970 of 2026-11-29.

    Raises:
        BadRequestError: that is no day.
    """
    try:
        return (date.fromisoformat(text) - _EPOCH).days
    except ValueError as error:
        raise BadRequestError(f"'{text[:40]}' is no day. Write it as 2026-11-29.") from error
