"""Keeps the configuration that is in force, who was offered one, and when GitHub is looked at next."""

import sqlalchemy as sa
import sqlmodel
from alembic import op

import store.types

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "configurationfile",
        sa.Column("repository_id", sa.BigInteger(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("updated_at", store.types.UtcDateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["repository_id"], ["repository.id"]),
        sa.PrimaryKeyConstraint("repository_id"),
    )
    op.create_table(
        "sweep",
        sa.Column("name", sqlmodel.sql.sqltypes.AutoString(length=50), nullable=False),
        sa.Column("due_at", store.types.UtcDateTime(timezone=True), nullable=False),
        sa.Column("done_until", store.types.UtcDateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("name"),
    )
    with op.batch_alter_table("task", schema=None) as batch_op:
        batch_op.add_column(sa.Column("trigger_key", sqlmodel.sql.sqltypes.AutoString(length=200), nullable=True))
        batch_op.add_column(sa.Column("report_tries", sa.Integer(), nullable=False, server_default="0"))
        batch_op.create_unique_constraint("uq_task_trigger_key", ["trigger_key"])
    with op.batch_alter_table("repository", schema=None) as batch_op:
        batch_op.add_column(sa.Column("onboarding_at", store.types.UtcDateTime(timezone=True), nullable=True))


def downgrade() -> None:
    with op.batch_alter_table("repository", schema=None) as batch_op:
        batch_op.drop_column("onboarding_at")
    with op.batch_alter_table("task", schema=None) as batch_op:
        batch_op.drop_constraint("uq_task_trigger_key", type_="unique")
        batch_op.drop_column("report_tries")
        batch_op.drop_column("trigger_key")
    op.drop_table("sweep")
    op.drop_table("configurationfile")
