"""${message.capitalize()}."""

import sqlalchemy as sa
import sqlmodel
from sqlalchemy.dialects import postgresql

import store.types
from alembic import op

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
branch_labels = None
depends_on = None


def upgrade() -> None:
    ${upgrades if upgrades else "pass"}


def downgrade() -> None:
    ${downgrades if downgrades else "pass"}
