"""The first schema."""

import sqlalchemy as sa
import sqlmodel
from alembic import op
from sqlalchemy.dialects import postgresql

import store.types

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "delivery",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("guid", sqlmodel.sql.sqltypes.AutoString(length=100), nullable=False),
        sa.Column("event", sqlmodel.sql.sqltypes.AutoString(length=100), nullable=False),
        sa.Column("action", sqlmodel.sql.sqltypes.AutoString(length=100), nullable=False),
        sa.Column("payload", sa.LargeBinary(), nullable=False),
        sa.Column("received_at", store.types.UtcDateTime(timezone=True), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("not_before", store.types.UtcDateTime(timezone=True), nullable=True),
        sa.Column("handled_at", store.types.UtcDateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("guid"),
    )
    with op.batch_alter_table("delivery", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_delivery_state"), ["state"], unique=False)

    op.create_table(
        "heartbeat",
        sa.Column("name", sqlmodel.sql.sqltypes.AutoString(length=200), nullable=False),
        sa.Column("role", sqlmodel.sql.sqltypes.AutoString(length=50), nullable=False),
        sa.Column("seen_at", store.types.UtcDateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "installation",
        sa.Column("id", sa.BigInteger(), nullable=False),
        sa.Column("account", sqlmodel.sql.sqltypes.AutoString(length=200), nullable=False),
        sa.Column("suspended", sa.Boolean(), nullable=False),
        sa.Column("removed", sa.Boolean(), nullable=False),
        sa.Column("updated_at", store.types.UtcDateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "memoryentry",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("key", sqlmodel.sql.sqltypes.AutoString(length=100), nullable=False),
        sa.Column("task_key", sqlmodel.sql.sqltypes.AutoString(length=100), nullable=False),
        sa.Column("repository", sqlmodel.sql.sqltypes.AutoString(length=300), nullable=False),
        sa.Column("dimension", sqlmodel.sql.sqltypes.AutoString(length=50), nullable=False),
        sa.Column("language", sqlmodel.sql.sqltypes.AutoString(length=50), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("link", sqlmodel.sql.sqltypes.AutoString(length=500), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("encoder", sqlmodel.sql.sqltypes.AutoString(length=200), nullable=False),
        sa.Column("embedding", sa.LargeBinary(), nullable=True),
        sa.Column("model", sqlmodel.sql.sqltypes.AutoString(length=200), nullable=False),
        sa.Column("score", sa.Float(), nullable=False),
        sa.Column("cost_usd", sa.Float(), nullable=False),
        sa.Column("final", sa.Boolean(), nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.Column("created_at", store.types.UtcDateTime(timezone=True), nullable=False),
        sa.Column("updated_at", store.types.UtcDateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("key"),
    )
    with op.batch_alter_table("memoryentry", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_memoryentry_model"), ["model"], unique=False)
        batch_op.create_index("ix_memoryentry_revision", ["revision"], unique=False)
        batch_op.create_index(batch_op.f("ix_memoryentry_task_key"), ["task_key"], unique=False)

    op.create_table(
        "repository",
        sa.Column("id", sa.BigInteger(), nullable=False),
        sa.Column("installation_id", sa.BigInteger(), nullable=False),
        sa.Column("full_name", sqlmodel.sql.sqltypes.AutoString(length=300), nullable=False),
        sa.Column("default_branch", sqlmodel.sql.sqltypes.AutoString(length=300), nullable=False),
        sa.Column("private", sa.Boolean(), nullable=False),
        sa.Column("active", sa.Boolean(), nullable=False),
        sa.Column("updated_at", store.types.UtcDateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["installation_id"],
            ["installation.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
    )
    with op.batch_alter_table("repository", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_repository_full_name"), ["full_name"], unique=False)
        batch_op.create_index(batch_op.f("ix_repository_installation_id"), ["installation_id"], unique=False)

    op.create_table(
        "task",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("repository_id", sa.BigInteger(), nullable=True),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("trigger", sa.Text(), nullable=False),
        sa.Column("target", sqlmodel.sql.sqltypes.AutoString(length=400), nullable=False),
        sa.Column("target_number", sa.Integer(), nullable=True),
        sa.Column("requested_by", sqlmodel.sql.sqltypes.AutoString(length=200), nullable=False),
        sa.Column("delivery_guid", sqlmodel.sql.sqltypes.AutoString(length=100), nullable=True),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("dimension", sqlmodel.sql.sqltypes.AutoString(length=50), nullable=False),
        sa.Column("language", sqlmodel.sql.sqltypes.AutoString(length=50), nullable=False),
        sa.Column("base_ref", sqlmodel.sql.sqltypes.AutoString(length=300), nullable=False),
        sa.Column("base_sha", sqlmodel.sql.sqltypes.AutoString(length=64), nullable=False),
        sa.Column("ci_run_id", sa.BigInteger(), nullable=True),
        sa.Column("hint", sa.Text(), nullable=False),
        sa.Column("pinned_model", sqlmodel.sql.sqltypes.AutoString(length=200), nullable=False),
        sa.Column("budget_usd", sa.Float(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("stop_requested_by", sqlmodel.sql.sqltypes.AutoString(length=200), nullable=False),
        sa.Column("lease_owner", sqlmodel.sql.sqltypes.AutoString(length=200), nullable=False),
        sa.Column("lease_until", store.types.UtcDateTime(timezone=True), nullable=True),
        sa.Column("not_before", store.types.UtcDateTime(timezone=True), nullable=True),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("report_due", sa.Boolean(), nullable=False),
        sa.Column("report_not_before", store.types.UtcDateTime(timezone=True), nullable=True),
        sa.Column("published_attempt_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("branch", sqlmodel.sql.sqltypes.AutoString(length=300), nullable=False),
        sa.Column("head_sha", sqlmodel.sql.sqltypes.AutoString(length=64), nullable=False),
        sa.Column("pr_number", sa.Integer(), nullable=True),
        sa.Column("pr_url", sqlmodel.sql.sqltypes.AutoString(length=500), nullable=False),
        sa.Column("status_comment_id", sa.BigInteger(), nullable=True),
        sa.Column("check_run_id", sa.BigInteger(), nullable=True),
        sa.Column("created_at", store.types.UtcDateTime(timezone=True), nullable=False),
        sa.Column("updated_at", store.types.UtcDateTime(timezone=True), nullable=False),
        sa.Column("finished_at", store.types.UtcDateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["repository_id"],
            ["repository.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("delivery_guid"),
    )
    with op.batch_alter_table("task", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_task_lease_until"), ["lease_until"], unique=False)
        batch_op.create_index(batch_op.f("ix_task_pr_number"), ["pr_number"], unique=False)
        batch_op.create_index(batch_op.f("ix_task_report_due"), ["report_due"], unique=False)
        batch_op.create_index(batch_op.f("ix_task_repository_id"), ["repository_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_task_state"), ["state"], unique=False)
        batch_op.create_index(batch_op.f("ix_task_target"), ["target"], unique=False)

    op.create_table(
        "decision",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("task_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("at", store.types.UtcDateTime(timezone=True), nullable=False),
        sa.Column("ranked", sa.JSON().with_variant(postgresql.JSONB(), "postgresql"), nullable=False),
        sa.Column("chosen", sqlmodel.sql.sqltypes.AutoString(length=200), nullable=False),
        sa.Column("propensity", sa.Float(), nullable=False),
        sa.Column("votes", sa.JSON().with_variant(postgresql.JSONB(), "postgresql"), nullable=False),
        sa.Column("neighbours", sa.JSON().with_variant(postgresql.JSONB(), "postgresql"), nullable=False),
        sa.Column("reasons", sa.JSON().with_variant(postgresql.JSONB(), "postgresql"), nullable=False),
        sa.Column("data", sa.JSON().with_variant(postgresql.JSONB(), "postgresql"), nullable=False),
        sa.ForeignKeyConstraint(
            ["task_id"],
            ["task.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
    )
    with op.batch_alter_table("decision", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_decision_task_id"), ["task_id"], unique=False)

    op.create_table(
        "history",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("task_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("at", store.types.UtcDateTime(timezone=True), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("data", sa.JSON().with_variant(postgresql.JSONB(), "postgresql"), nullable=False),
        sa.ForeignKeyConstraint(
            ["task_id"],
            ["task.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
    )
    with op.batch_alter_table("history", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_history_task_id"), ["task_id"], unique=False)

    op.create_table(
        "outcome",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("task_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("ref", sqlmodel.sql.sqltypes.AutoString(length=200), nullable=False),
        sa.Column("at", store.types.UtcDateTime(timezone=True), nullable=False),
        sa.Column("recorded_at", store.types.UtcDateTime(timezone=True), nullable=False),
        sa.Column("data", sa.JSON().with_variant(postgresql.JSONB(), "postgresql"), nullable=False),
        sa.ForeignKeyConstraint(
            ["task_id"],
            ["task.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("task_id", "kind", "ref"),
    )
    with op.batch_alter_table("outcome", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_outcome_task_id"), ["task_id"], unique=False)

    op.create_table(
        "attempt",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("task_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("decision_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("model", sqlmodel.sql.sqltypes.AutoString(length=200), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("exit_status", sqlmodel.sql.sqltypes.AutoString(length=100), nullable=False),
        sa.Column("error", sa.Text(), nullable=False),
        sa.Column("steps", sa.Integer(), nullable=False),
        sa.Column("tokens_in", sa.Integer(), nullable=False),
        sa.Column("tokens_out", sa.Integer(), nullable=False),
        sa.Column("cost_usd", sa.Float(), nullable=False),
        sa.Column("patch", sa.Text(), nullable=False),
        sa.Column("trajectory", sa.JSON().with_variant(postgresql.JSONB(), "postgresql"), nullable=False),
        sa.Column("score", sa.Float(), nullable=True),
        sa.Column("started_at", store.types.UtcDateTime(timezone=True), nullable=False),
        sa.Column("finished_at", store.types.UtcDateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["decision_id"],
            ["decision.id"],
        ),
        sa.ForeignKeyConstraint(
            ["task_id"],
            ["task.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("task_id", "number"),
    )
    with op.batch_alter_table("attempt", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_attempt_model"), ["model"], unique=False)
        batch_op.create_index(batch_op.f("ix_attempt_task_id"), ["task_id"], unique=False)

    op.create_table(
        "ledger",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("reservation", sqlmodel.sql.sqltypes.AutoString(length=64), nullable=False),
        sa.Column("closing", sa.Boolean(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("usd_micros", sa.BigInteger(), nullable=False),
        sa.Column("task_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("attempt_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("repository_id", sa.BigInteger(), nullable=True),
        sa.Column("model", sqlmodel.sql.sqltypes.AutoString(length=200), nullable=False),
        sa.Column("at", store.types.UtcDateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["attempt_id"],
            ["attempt.id"],
        ),
        sa.ForeignKeyConstraint(
            ["task_id"],
            ["task.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("reservation", "closing"),
    )
    with op.batch_alter_table("ledger", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_ledger_at"), ["at"], unique=False)
        batch_op.create_index(batch_op.f("ix_ledger_repository_id"), ["repository_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_ledger_task_id"), ["task_id"], unique=False)

    op.create_table(
        "verification",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("attempt_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("at", store.types.UtcDateTime(timezone=True), nullable=False),
        sa.Column("score", sa.Float(), nullable=False),
        sa.Column("verdict", sqlmodel.sql.sqltypes.AutoString(length=50), nullable=False),
        sa.Column("summary", sa.Text(), nullable=False),
        sa.Column("signals", sa.JSON().with_variant(postgresql.JSONB(), "postgresql"), nullable=False),
        sa.Column("tests", sa.JSON().with_variant(postgresql.JSONB(), "postgresql"), nullable=False),
        sa.ForeignKeyConstraint(
            ["attempt_id"],
            ["attempt.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("attempt_id"),
    )


def downgrade() -> None:
    op.drop_table("verification")
    with op.batch_alter_table("ledger", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_ledger_task_id"))
        batch_op.drop_index(batch_op.f("ix_ledger_repository_id"))
        batch_op.drop_index(batch_op.f("ix_ledger_at"))

    op.drop_table("ledger")
    with op.batch_alter_table("attempt", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_attempt_task_id"))
        batch_op.drop_index(batch_op.f("ix_attempt_model"))

    op.drop_table("attempt")
    with op.batch_alter_table("outcome", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_outcome_task_id"))

    op.drop_table("outcome")
    with op.batch_alter_table("history", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_history_task_id"))

    op.drop_table("history")
    with op.batch_alter_table("decision", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_decision_task_id"))

    op.drop_table("decision")
    with op.batch_alter_table("task", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_task_target"))
        batch_op.drop_index(batch_op.f("ix_task_state"))
        batch_op.drop_index(batch_op.f("ix_task_repository_id"))
        batch_op.drop_index(batch_op.f("ix_task_report_due"))
        batch_op.drop_index(batch_op.f("ix_task_pr_number"))
        batch_op.drop_index(batch_op.f("ix_task_lease_until"))

    op.drop_table("task")
    with op.batch_alter_table("repository", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_repository_installation_id"))
        batch_op.drop_index(batch_op.f("ix_repository_full_name"))

    op.drop_table("repository")
    with op.batch_alter_table("memoryentry", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_memoryentry_task_key"))
        batch_op.drop_index("ix_memoryentry_revision")
        batch_op.drop_index(batch_op.f("ix_memoryentry_model"))

    op.drop_table("memoryentry")
    op.drop_table("installation")
    op.drop_table("heartbeat")
    with op.batch_alter_table("delivery", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_delivery_state"))

    op.drop_table("delivery")
