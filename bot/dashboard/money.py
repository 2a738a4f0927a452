"""Where the month is heading, who spent it, the ledger's lines and the audit log."""

import calendar
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from sqlmodel import Session, col, select

from bot.dashboard.facts import DAY_S, Bools, Facts, present
from bot.dashboard.roles import Viewer
from bot.dashboard.stats import MICROS
from store.tables import AuditEntry, Ledger, Task
from store.types import utc_now
from workers.money import to_usd

LEDGER_PAGE = 100
_FORECAST_DAYS = 14


@dataclass(frozen=True)
class Forecast:
    """Where the month ends if each day to come is like the mean of the last two weeks."""

    month_usd: float
    a_day_usd: float
    reaches_cap_on: int | None
    """The day (since 1970) on which the month's cap is used up; None where it is not."""


@dataclass(frozen=True)
class LedgerLine:
    id: int
    at: datetime
    kind: str
    usd: float
    task_id: int
    model: str
    repository: str
    person: str


def forecast(facts: Facts, month_cap_usd: float, now: datetime | None = None) -> Forecast:
    """Return where the month is heading."""
    now = now or utc_now()
    today = int(now.timestamp() // DAY_S)
    first = today - now.day + 1
    spent = float(facts.spend.micros[(facts.spend.day >= first) & (facts.spend.day <= today)].sum()) / MICROS
    # Today is not over: it would pull the mean down.
    recent = (facts.spend.day >= today - _FORECAST_DAYS) & (facts.spend.day < today)
    seen = min(_FORECAST_DAYS, max(1, today - int(facts.spend.day.min()))) if len(facts.spend.day) else 1
    a_day = float(facts.spend.micros[recent].sum()) / MICROS / seen
    left = calendar.monthrange(now.year, now.month)[1] - now.day
    reaches = None
    if spent >= month_cap_usd:
        reaches = today
    elif a_day > 0 and spent + a_day * left >= month_cap_usd:
        reaches = today + int(np.ceil((month_cap_usd - spent) / a_day))
    return Forecast(spent + a_day * left, a_day, reaches)


def spenders(facts: Facts, first_day: int) -> dict[str, list[tuple[str, float]]]:
    """Return who and what spent since a day, the most first: by model, by repository, by person."""
    recent = facts.spend.day >= first_day
    models: dict[str, float] = {}
    repositories: dict[str, float] = {}
    for code in present(facts.spend.model[recent]):
        models[facts.models.names[code]] = _usd(facts, recent & (facts.spend.model == code))
    for identity in np.unique(facts.spend.repository[recent]):
        name = facts.repositories.get(int(identity), "local tasks")
        repositories[name] = _usd(facts, recent & (facts.spend.repository == identity))
    persons: dict[str, float] = {}
    if len(facts.attempts):
        rows = facts.task_rows
        started = facts.attempts.started >= first_day * DAY_S
        sums = np.bincount(facts.tasks.person[rows][started], weights=facts.attempts.cost_usd[started])
        persons = {facts.persons.names[code] or "CI": float(usd) for code, usd in enumerate(sums) if usd > 0}
    return {
        "model": _largest(models),
        "repository": _largest(repositories),
        "person": _largest(persons),
    }


def ledger_page(
    session: Session, facts: Facts, viewer: Viewer, *, before: int | None, task_id: int | None = None
) -> tuple[list[LedgerLine], int | None]:
    """Return lines of the ledger, the newest first, and where the next page begins."""
    query = select(Ledger, Task.requested_by).join(Task, col(Task.id) == col(Ledger.task_id))
    if viewer.repositories is not None:
        query = query.where(col(Ledger.repository_id).in_(viewer.repositories))
    if task_id is not None:
        query = query.where(Ledger.task_id == task_id)
    if before is not None:
        query = query.where(col(Ledger.id) < before)
    rows = session.exec(query.order_by(col(Ledger.id).desc()).limit(LEDGER_PAGE + 1)).all()
    lines = [
        LedgerLine(
            id=row.id or 0,
            at=row.at,
            kind=str(row.kind),
            usd=to_usd(row.usd_micros),
            task_id=row.task_id,
            model=row.model,
            repository=facts.repositories.get(row.repository_id or 0, ""),
            person=person,
        )
        for row, person in rows[:LEDGER_PAGE]
    ]
    return lines, lines[-1].id if len(rows) > LEDGER_PAGE else None


def audit_page(session: Session, before: int | None = None, page: int = 50) -> Sequence[AuditEntry]:
    """Return what people changed, the newest first."""
    query = select(AuditEntry).order_by(col(AuditEntry.id).desc()).limit(page)
    return session.exec(query.where(col(AuditEntry.id) < before) if before is not None else query).all()


def month_start_day(now: datetime | None = None) -> int:
    """Return the first day (since 1970) of this month."""
    now = now or utc_now()
    return int(now.timestamp() // DAY_S) - now.day + 1


def _usd(facts: Facts, mask: Bools) -> float:
    return float(facts.spend.micros[mask].sum()) / MICROS


def _largest(sums: dict[str, float], most: int = 10) -> list[tuple[str, float]]:
    return sorted(sums.items(), key=lambda item: (-item[1], item[0]))[:most]
