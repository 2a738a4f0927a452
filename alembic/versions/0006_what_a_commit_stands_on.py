"""Keeps what the commit of a task's own branch stands on: the newest of the base branch, where the patch merges.

From here on the bodies of deliveries are packed; the version before reads none that is.
"""

import zlib

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
    delivery = sa.table(
        "delivery", sa.column("id", sa.BigInteger()), sa.column("payload", sa.LargeBinary()), sa.column("state")
    )
    left = sa.select(delivery.c.id, delivery.c.payload).where(delivery.c.state.in_(["received", "failed"]))
    for row, payload in op.get_bind().execute(left).all():
        if payload[:1] == b"\x78":
            unpacked = sa.update(delivery).where(delivery.c.id == row).values(payload=zlib.decompress(payload))
            op.get_bind().execute(unpacked)
    with op.batch_alter_table("task", schema=None) as batch_op:
        batch_op.drop_column("parent_sha")
