"""Keep beside an attempt's score what the verifier and the voters had said of it."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_JSON = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")


def upgrade() -> None:
    with op.batch_alter_table("memoryentry", schema=None) as batch_op:
        batch_op.add_column(sa.Column("verifier_score", sa.Float(), nullable=True))
        batch_op.add_column(sa.Column("views", _JSON, nullable=False, server_default="{}"))
        batch_op.add_column(sa.Column("namings", _JSON, nullable=False, server_default="{}"))
        batch_op.add_column(sa.Column("traits", _JSON, nullable=False, server_default="[]"))
    # Until now a row that is not final held nothing but the verifier's score.
    op.execute("UPDATE memoryentry SET verifier_score = score WHERE NOT final")


def downgrade() -> None:
    with op.batch_alter_table("memoryentry", schema=None) as batch_op:
        batch_op.drop_column("traits")
        batch_op.drop_column("namings")
        batch_op.drop_column("views")
        batch_op.drop_column("verifier_score")
