"""What the columns of many tables have in common."""

from typing import Any

from sqlalchemy import JSON, BigInteger, Integer
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field

from store.types import UtcDateTime, utc_now

Json = JSON().with_variant(JSONB(), "postgresql")
# SQLite numbers rows by itself only in a column of exactly this type.
RowId = BigInteger().with_variant(Integer(), "sqlite")


def id_column() -> Any:
    return Field(default=None, primary_key=True, sa_type=RowId)


def moment_column() -> Any:
    return Field(default_factory=utc_now, sa_type=UtcDateTime)
