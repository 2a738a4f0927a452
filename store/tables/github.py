"""What GitHub tells us: deliveries, installations, repositories and their configuration."""

from datetime import datetime

from sqlalchemy import BigInteger, Column, Index, Text
from sqlmodel import Field, SQLModel

from store.states import DeliveryState
from store.tables.columns import id_column, moment_column
from store.types import EnumText, PackedJson, UtcDateTime


class Delivery(SQLModel, table=True):
    """The inbox: one row for each `X-GitHub-Delivery`, stored before the webhook is acknowledged."""

    __table_args__ = (Index("ix_delivery_received_at", "received_at", "state"),)

    id: int | None = id_column()
    guid: str = Field(unique=True, max_length=100)
    event: str = Field(max_length=100)
    action: str = Field(default="", max_length=100)
    payload: bytes = Field(sa_column=Column(PackedJson, nullable=False))
    """The raw body, as signed."""
    received_at: datetime = moment_column()
    state: DeliveryState = Field(default=DeliveryState.RECEIVED, sa_type=EnumText(DeliveryState), index=True)
    reason: str = Field(default="", sa_type=Text)
    """Why it was ignored, or what failed."""
    tries: int = 0
    not_before: datetime | None = Field(default=None, sa_type=UtcDateTime)
    """A process works on it until then, or GitHub asked to wait."""
    handled_at: datetime | None = Field(default=None, sa_type=UtcDateTime)


class Installation(SQLModel, table=True):
    """An account that installed the App. The id is GitHub's."""

    id: int = Field(primary_key=True, sa_type=BigInteger)
    account: str = Field(max_length=200)
    suspended: bool = False
    removed: bool = False
    updated_at: datetime = moment_column()


class Repository(SQLModel, table=True):
    """A repository that an installation covers. The id is GitHub's."""

    id: int = Field(primary_key=True, sa_type=BigInteger)
    installation_id: int = Field(foreign_key="installation.id", sa_type=BigInteger, index=True)
    full_name: str = Field(max_length=300, index=True)
    default_branch: str = Field(default="", max_length=300)
    private: bool = False
    active: bool = True
    onboarding_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    """When it was offered a configuration, or found to need none; None: not yet."""
    updated_at: datetime = moment_column()


class Sweep(SQLModel, table=True):
    """When each of the regular looks at GitHub is due; one process at a time takes one."""

    name: str = Field(primary_key=True, max_length=50)
    due_at: datetime = Field(sa_type=UtcDateTime)
    done_until: datetime | None = Field(default=None, sa_type=UtcDateTime)
    """Everything up to here has been looked at."""


class ConfigurationFile(SQLModel, table=True):
    """The last valid `.acrouter.yml` of a repository's default branch: it stays in force while a newer one is wrong."""

    repository_id: int = Field(primary_key=True, foreign_key="repository.id", sa_type=BigInteger)
    text: str = Field(sa_type=Text)
    updated_at: datetime = moment_column()
