"""An operator sees how all policies do: the worker's role may read which status and verdict each has.

The worker reads the shared prior's row as it did; of a user's policy it may look at numbers, as of the shared one.

Revision ID: 0035
Revises: 0033
Create Date: 2026-11-23 01:00:00.000000
"""

from alembic import op

revision = "0035"
down_revision = "0033"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("CREATE POLICY operator ON policies FOR SELECT TO casebank_worker USING (true)")


def downgrade() -> None:
    op.execute("DROP POLICY operator ON policies")
