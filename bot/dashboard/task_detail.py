"""One task with everything that is known of it; what can be megabytes is cut in the database already."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import select as select_columns
from sqlmodel import Session, col, func, select

from bot.dashboard.roles import Viewer
from store.states import LedgerKind
from store.tables import Attempt, Decision, History, Ledger, Outcome, Repository, Task, Verification
from workers.budgets import to_usd

LONGEST_TEXT = 20_000
LONGEST_DIFF = 120_000
_MOST_HISTORY = 500
_MOST_CALLS = 500
_TASK = tuple(column for column in Task.__table__.columns if column.name not in ("title", "text"))  # type: ignore[attr-defined]
_ATTEMPT = tuple(
    column
    for column in Attempt.__table__.columns  # type: ignore[attr-defined]
    if column.name not in ("patch", "trajectory", "error")
)


@dataclass(frozen=True)
class Call:
    """One model call in the ledger."""

    at: datetime
    reserved_usd: float
    paid_usd: float | None
    """None while it runs."""
    assumed: bool
    """Its worker died: the whole reservation counts."""


@dataclass(frozen=True)
class AttemptDetail:
    row: Mapping[str, Any]
    patch: str
    patch_length: int
    error: str
    verification: Verification | None
    decision: Decision | None
    calls: tuple[Call, ...]


@dataclass(frozen=True)
class TaskDetail:
    row: Mapping[str, Any]
    title: str
    text: str
    text_length: int
    repository: str
    web_url: str
    """The repository's pages on GitHub; empty for a local one."""
    history: Sequence[History]
    attempts: tuple[AttemptDetail, ...]
    decisions: Sequence[Decision]
    outcomes: Sequence[Outcome]

    @property
    def decision(self) -> Decision | None:
        """The first one."""
        return self.decisions[0] if self.decisions else None

    @property
    def spent_usd(self) -> float:
        return sum(
            call.paid_usd if call.paid_usd is not None else call.reserved_usd
            for attempt in self.attempts
            for call in attempt.calls
        )


def task_detail(session: Session, task_id: int, viewer: Viewer, github_web_url: str) -> TaskDetail | None:
    """Return a task, or None where there is none or the viewer may not know of it. Eight queries, however large."""
    found = session.execute(
        select_columns(
            *_TASK,
            func.substr(Task.title, 1, 1000).label("cut_title"),
            func.substr(Task.text, 1, LONGEST_TEXT).label("cut_text"),
            func.length(Task.text).label("text_length"),
        ).where(col(Task.id) == task_id)
    ).first()
    if found is None or not viewer.can_read(found.repository_id):
        return None
    row = _named(found)
    repository = session.get(Repository, row["repository_id"]) if row["repository_id"] is not None else None
    name = repository.full_name if repository else ""
    decisions = session.exec(select(Decision).where(Decision.task_id == task_id).order_by(col(Decision.id))).all()
    history = session.exec(
        select(History).where(History.task_id == task_id).order_by(col(History.id)).limit(_MOST_HISTORY)
    ).all()
    outcomes = session.exec(select(Outcome).where(Outcome.task_id == task_id).order_by(col(Outcome.id))).all()
    return TaskDetail(
        row=row,
        title=row["cut_title"],
        text=row["cut_text"],
        text_length=row["text_length"],
        repository=name,
        web_url=f"{github_web_url.rstrip('/')}/{name}" if name else "",
        history=history,
        attempts=_attempts(session, task_id, {one.id: one for one in decisions}),
        decisions=decisions,
        outcomes=outcomes,
    )


def trajectory_of(session: Session, task_id: int, number: int) -> tuple[Mapping[str, Any], dict[str, Any]] | None:
    """Return an attempt's narrow columns and its trajectory."""
    found = session.execute(
        select_columns(*_ATTEMPT, col(Attempt.trajectory)).where(
            col(Attempt.task_id) == task_id, col(Attempt.number) == number
        )
    ).first()
    return None if found is None else (_named(found), found.trajectory)


def _named(row: Any) -> dict[str, Any]:
    return dict(row._mapping)


def _attempts(session: Session, task_id: int, decisions: Mapping[int | None, Decision]) -> tuple[AttemptDetail, ...]:
    rows = session.execute(
        select_columns(
            *_ATTEMPT,
            func.substr(Attempt.patch, 1, LONGEST_DIFF).label("cut_patch"),
            func.length(Attempt.patch).label("patch_length"),
            func.substr(Attempt.error, 1, 4000).label("cut_error"),
        )
        .where(col(Attempt.task_id) == task_id)
        .order_by(col(Attempt.number))
    ).all()
    ids = [row.id for row in rows]
    verifications = session.exec(select(Verification).where(col(Verification.attempt_id).in_(ids))).all()
    judged = {one.attempt_id: one for one in verifications}
    calls = _calls(session, task_id)
    return tuple(
        AttemptDetail(
            row=_named(row),
            patch=row.cut_patch,
            patch_length=row.patch_length,
            error=row.cut_error,
            verification=judged.get(row.id),
            decision=decisions.get(row.decision_id),
            calls=tuple(calls.get(row.id, ())),
        )
        for row in rows
    )


def _calls(session: Session, task_id: int) -> dict[int | None, list[Call]]:
    rows = session.exec(
        select(Ledger).where(Ledger.task_id == task_id).order_by(col(Ledger.id)).limit(2 * _MOST_CALLS)
    ).all()
    closed = {row.reservation: row for row in rows if row.closing}
    calls: dict[int | None, list[Call]] = {}
    for row in rows:
        if row.closing:
            continue
        end = closed.get(row.reservation)
        calls.setdefault(row.attempt_id, []).append(
            Call(
                at=row.at,
                reserved_usd=to_usd(row.usd_micros),
                paid_usd=to_usd(end.usd_micros) if end else None,
                assumed=end is not None and end.kind is LedgerKind.ASSUMED,
            )
        )
    return calls
