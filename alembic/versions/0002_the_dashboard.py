"""The dashboard: sessions, tokens, caps that people changed, the audit log, and indexes for its numbers."""

import sqlalchemy as sa
import sqlmodel
from alembic import op
from sqlalchemy.dialects import postgresql

import store.types

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_ROW_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_JSON = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")
_INDEXES = {
    "ix_delivery_received_at": ("delivery", ["received_at", "state"]),
    "ix_task_updated_at": ("task", ["updated_at"]),
    "ix_task_facts": (
        "task",
        [
            *("id", "repository_id", "kind", "trigger", "requested_by", "dimension", "pinned_model", "state"),
            *("published_attempt_id", "created_at", "updated_at", "finished_at"),
        ],
    ),
    "ix_attempt_facts": (
        "attempt",
        ["task_id", "number", "id", "model", "state", "score", "cost_usd", "steps", "started_at", "finished_at"],
    ),
    "ix_decision_facts": ("decision", ["task_id", "id", "chosen", "propensity"]),
    "ix_outcome_kind": ("outcome", ["kind", "task_id"]),
    "ix_memoryentry_beliefs": ("memoryentry", ["model", "dimension", "final", "score", "cost_usd"]),
    "ix_ledger_facts": ("ledger", ["at", "closing", "usd_micros", "model", "repository_id", "task_id"]),
}


def _text(length: int) -> sqlmodel.sql.sqltypes.AutoString:
    return sqlmodel.sql.sqltypes.AutoString(length=length)


def _time() -> store.types.UtcDateTime:
    return store.types.UtcDateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "capoverride",
        sa.Column("name", _text(50), nullable=False),
        sa.Column("limit_micros", sa.BigInteger(), nullable=False),
        sa.Column("set_by", _text(200), nullable=False),
        sa.Column("at", _time(), nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "auditentry",
        sa.Column("id", _ROW_ID, nullable=False),
        sa.Column("at", _time(), nullable=False),
        sa.Column("actor", _text(200), nullable=False),
        sa.Column("action", _text(100), nullable=False),
        sa.Column("target", _text(400), nullable=False),
        sa.Column("data", _JSON, nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_auditentry_at", "auditentry", ["at"])
    op.create_table(
        "dashboardsession",
        sa.Column("id", _text(64), nullable=False),
        sa.Column("login", _text(200), nullable=False),
        sa.Column("role", _text(20), nullable=False),
        sa.Column("repositories", _JSON, nullable=True),
        sa.Column("sealed_token", sa.Text(), nullable=False),
        sa.Column("checked_at", _time(), nullable=False),
        sa.Column("created_at", _time(), nullable=False),
        sa.Column("expires_at", _time(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_dashboardsession_expires_at", "dashboardsession", ["expires_at"])
    op.create_table(
        "apitoken",
        sa.Column("id", _ROW_ID, nullable=False),
        sa.Column("name", _text(100), nullable=False),
        sa.Column("digest", _text(64), nullable=False),
        sa.Column("scopes", _text(200), nullable=False),
        sa.Column("created_at", _time(), nullable=False),
        sa.Column("expires_at", _time(), nullable=True),
        sa.Column("used_at", _time(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("digest"),
    )
    for name, (table, columns) in _INDEXES.items():
        op.create_index(name, table, columns)


def downgrade() -> None:
    for name, (table, _columns) in _INDEXES.items():
        op.drop_index(name, table_name=table)
    for table in ("apitoken", "dashboardsession", "auditentry", "capoverride"):
        op.drop_table(table)
