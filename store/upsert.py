"""Writes rows that two processes may write for the first time at the same moment."""

from collections.abc import Collection
from typing import Any

from sqlalchemy import ColumnElement
from sqlalchemy.dialects import postgresql, sqlite
from sqlmodel import Session, SQLModel

Insert = postgresql.Insert | sqlite.Insert


def insert_into(session: Session, table: type[SQLModel]) -> Insert:
    """Return an INSERT of the session's database, whose conflicts can be said what becomes of."""
    dialect = postgresql if session.get_bind().dialect.name == "postgresql" else sqlite
    insert: Insert = dialect.insert(table)
    return insert


def put(
    session: Session, row: SQLModel, *, changing: Collection[str], where: ColumnElement[bool] | None = None
) -> None:
    """Insert `row`, or change those columns of the row with its primary key; objects in the session are not touched.

    `where` is asked of the row that is there when it is to be changed: where it does not hold, that row stays.
    `Session.merge` looks first: two processes that both find nothing both insert, and one of them fails.
    """
    table: Any = type(row)
    values = row.model_dump()
    insert = insert_into(session, table).values(values)
    key = [column.name for column in table.__table__.primary_key]
    if changing:
        session.execute(
            insert.on_conflict_do_update(
                index_elements=key, set_={name: values[name] for name in changing}, where=where
            )
        )
    else:
        session.execute(insert.on_conflict_do_nothing(index_elements=key))
