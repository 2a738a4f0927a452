"""Finds a repository's tasks by the issue, PR, branch or workflow run of an event without going through them all."""

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

_INDEXES = {
    "ix_task_target_number": ["repository_id", "target_number"],
    "ix_task_pull_request": ["repository_id", "pr_number"],
    "ix_task_branch": ["repository_id", "branch"],
    "ix_task_ci_run_id": ["ci_run_id"],
}


def upgrade() -> None:
    for name, columns in _INDEXES.items():
        op.create_index(name, "task", columns)
    op.drop_index("ix_task_pr_number", "task")


def downgrade() -> None:
    op.create_index("ix_task_pr_number", "task", ["pr_number"])
    for name in _INDEXES:
        op.drop_index(name, "task")
