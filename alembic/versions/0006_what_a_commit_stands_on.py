"""Keeps what the commit of a task's own branch stands on: the newest of the base branch, where the patch merges."""

import sqlalchemy as sa
import sqlmodel
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    text = sqlmodel.sql.sqltypes.AutoString(length=64)
    with op.batch_alter_table("task", schema=None) as batch_op:
        batch_op.add_column(sa.Column("parent_sha", text, nullable=False, server_default=""))
    # What was published before, or is being published now, stands on the commit that it was tested on.
    op.execute("UPDATE task SET parent_sha = base_sha WHERE branch <> ''")


def downgrade() -> None:
    with op.batch_alter_table("task", schema=None) as batch_op:
        batch_op.drop_column("parent_sha")
