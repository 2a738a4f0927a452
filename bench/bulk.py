"""Writes many rows at once: by COPY into Postgres, by one prepared statement into SQLite."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, Table

from store.database import Database


@contextmanager
def loading(database: Database, tables: Sequence[Table]) -> Iterator[Connection]:
    """Yield a connection for `write` that does without indexes, keys and syncs; the indexes are made at the end.

    Each write is a transaction. Postgres lets only a superuser do without its keys.
    """
    indexes = [index for table in tables for index in sorted(table.indexes, key=lambda index: str(index.name))]
    with database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.detach()  # its settings are for nobody else
        for setting in _SQLITE if database.is_sqlite else _POSTGRES:
            connection.exec_driver_sql(setting)
        for index in indexes:
            index.drop(connection)
        yield connection
        for index in indexes:
            index.create(connection)


def write(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert rows that name the same columns each; what they do not name gets the database's own default."""
    if not rows:
        return
    names = list(rows[0])
    values = _as_the_driver_takes_them(connection, table, names, rows)
    columns = ", ".join(f'"{name}"' for name in names)
    cursor: Any = connection.connection.cursor()
    if connection.dialect.name == "sqlite":
        places = ", ".join("?" * len(names))
        cursor.execute("BEGIN")
        cursor.executemany(f"INSERT INTO {table.name} ({columns}) VALUES ({places})", values)  # noqa: S608
        cursor.execute("COMMIT")
        return
    with cursor.copy(f"COPY {table.name} ({columns}) FROM STDIN") as copy:
        for row in values:
            copy.write_row(row)


def _as_the_driver_takes_them(
    connection: Connection, table: Table, names: Sequence[str], rows: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[Any, ...]]:
    dialect = connection.dialect
    columns: list[Any] = []
    for name in names:
        bind = table.columns[name].type.dialect_impl(dialect).bind_processor(dialect)
        column = [row[name] for row in rows]
        columns.append(map(_once_each(bind), column) if bind else column)
    return zip(*columns, strict=True)


def _once_each(bind: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Convert each object once, however many rows it is in: times, words and JSON are in many."""
    done: dict[int, Any] = {}

    def converted(value: Any) -> Any:
        key = id(value)  # the rows keep it alive
        if key not in done:
            done[key] = bind(value)
        return done[key]

    return converted


_SQLITE = ("PRAGMA foreign_keys = OFF", "PRAGMA synchronous = OFF")
_POSTGRES = ("SET session_replication_role = replica", "SET synchronous_commit = off")
