"""CSV of every table, in pieces: a million rows need no memory."""

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import StreamingResponse
from sqlalchemy import select
from sqlmodel import col

from bot.dashboard import periods, stats
from bot.dashboard.access import ForbiddenError, NotFoundError, reader_of
from bot.dashboard.board import Board
from bot.dashboard.roles import Role, Viewer
from bot.dashboard.task_list import TaskFilter, mask, parse_filter
from store.database import Database
from store.suggest import did_you_mean
from store.tables import Attempt, AuditEntry, Decision, History, Ledger, Outcome, Task, Verification

_AT_ONCE = 2000
# A spreadsheet takes a cell that begins so for a formula (https://owasp.org/www-community/attacks/CSV_Injection).
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True)
class _Table:
    """Columns to write. `task` is the column with the task's id, by which it is known who may read the row."""

    columns: Sequence[Any]
    task: Any


_TABLES = {
    "attempts": _Table(
        (
            *(Attempt.id, Attempt.task_id, Attempt.number, Attempt.model, Attempt.state, Attempt.exit_status),
            *(Attempt.steps, Attempt.tokens_in, Attempt.tokens_out, Attempt.cost_usd, Attempt.score),
            *(Attempt.started_at, Attempt.finished_at),
        ),
        Attempt.task_id,
    ),
    "decisions": _Table(
        (Decision.id, Decision.task_id, Decision.at, Decision.chosen, Decision.propensity), Decision.task_id
    ),
    "history": _Table((History.id, History.task_id, History.at, History.state, History.message), History.task_id),
    "outcomes": _Table(
        (Outcome.id, Outcome.task_id, Outcome.kind, Outcome.ref, Outcome.at, Outcome.recorded_at), Outcome.task_id
    ),
    "ledger": _Table(
        (
            *(Ledger.id, Ledger.at, Ledger.reservation, Ledger.kind, Ledger.usd_micros, Ledger.task_id),
            *(Ledger.attempt_id, Ledger.repository_id, Ledger.model),
        ),
        Ledger.task_id,
    ),
    "verifications": _Table(
        (
            *(Verification.id, Verification.attempt_id, Verification.at, Verification.score, Verification.verdict),
            Verification.summary,
        ),
        None,
    ),
    "audit": _Table((AuditEntry.id, AuditEntry.at, AuditEntry.actor, AuditEntry.action, AuditEntry.target), None),
}
NAMES = ("tasks", "models", *_TABLES)


def routes(board: Board) -> APIRouter:
    router = APIRouter(include_in_schema=False)

    @router.get("/export/{name}.csv")
    def export(request: Request, name: str, days: int = periods.DEFAULT_DAYS) -> StreamingResponse:
        reader = reader_of(board, request)
        if name == "audit" and not reader.may(Role.ADMIN):
            raise ForbiddenError("The audit log is for admins.")
        rows: Iterable[Sequence[Any]]
        match name:  # what the address asks for is read here: once a byte is sent, nothing can be refused
            case "tasks":
                rows = _tasks(board, reader, parse_filter(request.query_params))
            case "models":
                rows = _models(board, reader, periods.of_days(days))
            case _ if name in _TABLES:
                rows = _rows(board.database, name, reader)
            case _:
                raise NotFoundError(
                    f"There is no table '{name}'.{did_you_mean(name, NAMES)} There are: {', '.join(NAMES)}."
                )
        return StreamingResponse(
            _written(rows),
            media_type="text/csv; charset=utf-8",
            headers={"Content-Disposition": f'attachment; filename="acrouter-{name}.csv"'},
        )

    return router


def _tasks(board: Board, reader: Viewer, wanted: TaskFilter) -> Iterator[Sequence[Any]]:
    facts = board.facts_for(reader)
    with board.database.reading() as session:
        ids = facts.tasks.id[mask(session, facts, wanted)].tolist()
    columns: Sequence[Any] = (
        *(Task.id, Task.repository_id, Task.kind, Task.trigger, Task.target_number, Task.requested_by, Task.title),
        *(Task.dimension, Task.language, Task.state, Task.reason, Task.budget_usd, Task.pr_number, Task.pr_url),
        *(Task.created_at, Task.finished_at),
    )
    yield [column.key for column in columns]
    for start in range(0, len(ids), 500):
        chosen = col(Task.id).in_(ids[start : start + 500])
        with board.database.reading() as session:
            yield from session.execute(select(*columns).where(chosen).order_by(col(Task.id))).all()


def _models(board: Board, reader: Viewer, period: periods.Period) -> Iterator[Sequence[Any]]:
    facts = board.facts_for(reader)
    yield (
        *("model", "attempts", "merged", "decided", "success", "success_low", "success_high", "waiting", "unusable"),
        *("spend_usd", "usd_per_attempt", "usd_per_merged", "seconds", "escalated"),
    )
    for row in stats.by_model(stats.within(facts, period)):
        share = row.success
        yield (
            *(row.model, row.attempts, row.merged, share.cases, share.value, share.low, share.high, row.waiting),
            *(row.unusable, row.spend_usd, row.usd_per_attempt, row.usd_per_merged, row.seconds, row.escalated),
        )


def _rows(database: Database, name: str, reader: Viewer) -> Iterator[Sequence[Any]]:
    """Yield the columns' names, then all rows that the reader may see, in the order of their ids."""
    table = _TABLES[name]
    identity = table.columns[0]
    yield [column.key for column in table.columns]
    last = 0
    while True:
        query = select(*table.columns).where(identity > last)
        if reader.repositories is not None:
            seen = select(col(Task.id)).where(col(Task.repository_id).in_(reader.repositories))
            if table.task is not None:
                query = query.where(table.task.in_(seen))
            elif name == "verifications":
                attempts = select(col(Attempt.id)).where(col(Attempt.task_id).in_(seen))
                query = query.where(col(Verification.attempt_id).in_(attempts))
        with database.reading() as session:
            rows = session.execute(query.order_by(identity).limit(_AT_ONCE)).all()
        yield from rows
        if len(rows) < _AT_ONCE:
            return
        last = rows[-1][0]


def _written(rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    """Yield CSV (RFC 4180) in pieces."""
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    for row in rows:
        writer.writerow([cell(value) for value in row])
        if buffer.tell() > 60_000:
            yield buffer.getvalue()
            buffer.seek(0)
            buffer.truncate()
    yield buffer.getvalue()


def cell(value: object) -> object:
    """Return a value as a cell that no spreadsheet obeys."""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, str) and value.startswith(_FORMULA):
        return f"'{value}"
    return value
