"""Money and its caps."""

from datetime import datetime

from sqlalchemy import BigInteger, Index, UniqueConstraint
from sqlmodel import Field, SQLModel

from store.states import LedgerKind
from store.tables.columns import RowId, id_column, moment_column
from store.types import EnumText, UtcDateTime, utc_now


class Ledger(SQLModel, table=True):
    """Money reserved and settled, append-only. What counts against a cap: settled, assumed, and open reservations."""

    __table_args__ = (
        UniqueConstraint("reservation", "closing"),
        Index("ix_ledger_facts", "at", "closing", "usd_micros", "model", "repository_id", "task_id"),
    )

    id: int | None = id_column()
    reservation: str = Field(max_length=64)
    """The same for a reservation and the row that ends it."""
    closing: bool = False
    """False for the reservation, True for its end: each can be there once."""
    kind: LedgerKind = Field(sa_type=EnumText(LedgerKind))
    usd_micros: int = Field(sa_type=BigInteger)
    task_id: int = Field(foreign_key="task.id", sa_type=RowId, index=True)
    attempt_id: int | None = Field(default=None, foreign_key="attempt.id", sa_type=RowId)
    repository_id: int | None = Field(default=None, sa_type=BigInteger, index=True)
    model: str = Field(default="", max_length=200)
    at: datetime = Field(default_factory=utc_now, sa_type=UtcDateTime, index=True)


class CapOverride(SQLModel, table=True):
    """A cap that a person changed on the dashboard; it stands in place of the setting until it is removed."""

    name: str = Field(primary_key=True, max_length=50)
    """As in the setting: `day` for ACROUTER_DAY_BUDGET_USD, `organisation_month` (`workers.limits`)."""
    limit_micros: int = Field(sa_type=BigInteger)
    set_by: str = Field(max_length=200)
    at: datetime = moment_column()
