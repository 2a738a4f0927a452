"""The installation itself: its endpoints, processes, and the people who look at it."""

from datetime import datetime
from typing import Any

from sqlalchemy import Index, Text
from sqlmodel import Field, SQLModel

from store.tables.columns import Json, id_column, moment_column
from store.types import UtcDateTime


class ModelEndpoint(SQLModel, table=True):
    """The circuit breaker of a model's endpoint (`workers.breakers`); of one whose last attempt it answered, no row."""

    model: str = Field(primary_key=True, max_length=200)
    failures: int = 0
    """In a row; those of one outage count up to the breaker's opening."""
    failed_at: datetime = Field(sa_type=UtcDateTime)
    """The last one that counted."""
    retry_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    """The model is passed over until then. None: it has not failed often enough."""
    error: str = Field(default="", sa_type=Text)
    """Of the last failure."""


class Heartbeat(SQLModel, table=True):
    """The processes that are alive: the workers."""

    name: str = Field(primary_key=True, max_length=200)
    role: str = Field(max_length=50)
    seen_at: datetime = moment_column()


class AuditEntry(SQLModel, table=True):
    """What a person changed or started through the dashboard or the command line, append-only."""

    __table_args__ = (Index("ix_auditentry_at", "at"),)

    id: int | None = id_column()
    at: datetime = moment_column()
    actor: str = Field(max_length=200)
    """A GitHub login, `localhost` for the one-time link, or `command line`."""
    action: str = Field(max_length=100)
    target: str = Field(default="", max_length=400)
    data: dict[str, Any] = Field(default_factory=dict, sa_type=Json)


class DashboardSession(SQLModel, table=True):
    """Somebody who signed in to the dashboard. The browser holds the id, signed."""

    id: str = Field(primary_key=True, max_length=64)
    """SHA-256 of the secret in the cookie: who reads the database cannot sign in with it."""
    login: str = Field(max_length=200)
    role: str = Field(max_length=20)
    """viewer, operator or admin."""
    repositories: list[int] | None = Field(default=None, sa_type=Json)
    """Ids of the repositories that the person can read on GitHub; None: all of them."""
    sealed_token: str = Field(default="", sa_type=Text)
    """The person's GitHub token, encrypted, by which the rights are asked for again."""
    checked_at: datetime = moment_column()
    created_at: datetime = moment_column()
    expires_at: datetime = Field(sa_type=UtcDateTime, index=True)


class ApiToken(SQLModel, table=True):
    """A token for the JSON API or for the metrics, or a one-time link to sign in; the token itself is not kept."""

    id: int | None = id_column()
    name: str = Field(max_length=100)
    digest: str = Field(unique=True, max_length=64)
    """SHA-256 of the token."""
    scopes: str = Field(max_length=200)
    """Words with a space between: read, metrics, sign-in."""
    created_at: datetime = moment_column()
    expires_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    used_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
