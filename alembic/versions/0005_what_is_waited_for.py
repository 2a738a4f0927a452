"""Keeps since when a task waits for something outside, and which models' endpoints fail."""

import sqlalchemy as sa
import sqlmodel
from alembic import op

import store.types

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "modelendpoint",
        sa.Column("model", sqlmodel.sql.sqltypes.AutoString(length=200), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("failed_at", store.types.UtcDateTime(timezone=True), nullable=False),
        sa.Column("retry_at", store.types.UtcDateTime(timezone=True), nullable=True),
        sa.Column("error", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("model"),
    )
    with op.batch_alter_table("task", schema=None) as batch_op:
        batch_op.add_column(sa.Column("waiting_since", store.types.UtcDateTime(timezone=True), nullable=True))


def downgrade() -> None:
    with op.batch_alter_table("task", schema=None) as batch_op:
        batch_op.drop_column("waiting_since")
    op.drop_table("modelendpoint")
