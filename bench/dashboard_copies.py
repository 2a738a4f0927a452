"""A long past out of a short one, by SQL alone: the rows of a block of tasks again and again, each time later.

A hundred thousand tasks take seconds so. Their numbers repeat, only the last blocks have texts and votes, and of an
attempt's calls one is in the ledger: it is for tests of how much a page can bear. `acrouter bench dashboard` measures
on a past of which every task is drawn (`bench.dashboard_data`).
"""

import sqlite3
from contextlib import closing
from datetime import timedelta

from sqlalchemy import Table
from sqlmodel import SQLModel

from bench.dashboard_data import Scale, fill
from store.database import Database
from store.types import utc_now

_BLOCK = 400
_TABLES = ("task", "decision", "attempt", "outcome", "ledger", "verification", "history")
_REFERENCES = {"task_id": "task", "decision_id": "decision", "attempt_id": "attempt", "published_attempt_id": "attempt"}
_WIDE = {"text": "", "patch": "", "trajectory": "{}", "ranked": "[]", "votes": "[]", "reasons": "[]"}
_WHOLE_BLOCKS = 3
_ROWS = {
    "ledger": "old.id % 4 = 2",
    "verification": f"n > :copies - {_WHOLE_BLOCKS}",
    "history": f"n > :copies - {_WHOLE_BLOCKS}",
}
"""Which rows of a table are copied; all of the others."""
_TIMES = ("at", "created_at", "updated_at", "started_at", "finished_at", "recorded_at")


def fill_by_copies(database: Database, tasks: int, *, days: int = 365) -> None:
    """Fill an empty, migrated SQLite database with `tasks` tasks, a multiple of 400, that end now."""
    copies = tasks // _BLOCK
    length = timedelta(days=days) / copies
    fill(database, Scale(_BLOCK), begins=utc_now() - timedelta(days=days), lasts=length)
    database.engine.dispose()  # nobody else looks on
    with closing(sqlite3.connect(str(database.engine.url.database))) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        indexes = _drop_indexes(connection)
        largest = {name: connection.execute(f"SELECT max(id) FROM {name}").fetchone()[0] for name in _TABLES}  # noqa: S608
        for name in _TABLES:
            _copy(connection, SQLModel.metadata.tables[name], largest, copies, length)
        for statement in indexes:
            connection.execute(statement)
        connection.execute("ANALYZE")
        connection.commit()


def _drop_indexes(connection: sqlite3.Connection) -> list[str]:
    """Drop the indexes of what is copied and return how to make them again: at once that is cheaper than row by row."""
    found = connection.execute(
        "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL AND tbl_name IN "  # noqa: S608
        f"({', '.join(repr(name) for name in _TABLES)})"
    ).fetchall()
    for name, _ in found:
        connection.execute(f"DROP INDEX {name}")
    return [sql for _, sql in found]


def _copy(
    connection: sqlite3.Connection, table: Table, largest: dict[str, int], copies: int, length: timedelta
) -> None:
    columns = [f'"{column.name}"' for column in table.columns]
    values = [_value(column.name, table.name, largest) for column in table.columns]
    connection.execute(
        "WITH RECURSIVE copy(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM copy WHERE n < :copies) "  # noqa: S608
        f"INSERT INTO {table.name} ({', '.join(columns)}) SELECT {', '.join(values)} FROM copy, {table.name} AS old "
        f"WHERE old.id <= :largest AND {_ROWS.get(table.name, 'true')} ORDER BY 1",
        {"copies": copies - 1, "largest": largest[table.name], "seconds": length.total_seconds()},
    )


def _value(column: str, table: str, largest: dict[str, int]) -> str:
    old = f'old."{column}"'
    moved = {"id": largest[table], "target_number": _BLOCK, "pr_number": _BLOCK}
    moved |= {name: largest[parent] for name, parent in _REFERENCES.items()}
    if column in moved:
        return f"{old} + n * {moved[column]}"
    if column in ("target", "reservation"):
        return f"{old} || '-' || n"
    if column in _WIDE:
        return f"CASE WHEN n > :copies - {_WHOLE_BLOCKS} THEN {old} ELSE '{_WIDE[column]}' END"
    if column in _TIMES:
        return f"strftime('%Y-%m-%d %H:%M:%f', {old}, (n * :seconds) || ' seconds') || '000'"
    return old
