"""Adds the time of a case's last change; cases of before have the time of this migration.

Revision ID: 0002_updated_at
Revises: 0001_baseline
"""

from alembic import op

revision = "0002_updated_at"
down_revision = "0001_baseline"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("ALTER TABLE cases ADD COLUMN updated_at timestamptz NOT NULL DEFAULT now()")
    # Citus refuses to pass on a right on a column; `casebank migrate --citus` gives it to the shards
    op.execute("SET LOCAL citus.enable_ddl_propagation = off")
    op.execute("GRANT UPDATE (updated_at) ON cases TO casebank_worker, casebank_eraser")
    op.execute("SET LOCAL citus.enable_ddl_propagation = on")


def downgrade() -> None:
    op.execute("ALTER TABLE cases DROP COLUMN updated_at")
