"""When each background job last ran, so that other processes and the next start can see it.

Revision ID: 0005
Revises: 0004
Create Date: 2026-11-22 03:00:12.618034
"""

import sqlalchemy as sa

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

# No user's row is here, so there is no user to tell apart: the worker's role alone comes in.
ACCESS = (
    "ALTER TABLE jobs ENABLE ROW LEVEL SECURITY",
    "ALTER TABLE jobs FORCE ROW LEVEL SECURITY",
    "CREATE POLICY worker ON jobs TO casebank_worker USING (true) WITH CHECK (true)",
    "GRANT SELECT, INSERT, UPDATE ON jobs TO casebank_worker",
)


def upgrade() -> None:
    op.create_table(
        "jobs",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("last_started", sa.DateTime(timezone=True), nullable=True),
        sa.Column("last_succeeded", sa.DateTime(timezone=True), nullable=True),
        sa.Column(
            "failures", sa.Integer(), server_default=sa.text("0"), nullable=False, comment="since the last success"
        ),
        sa.Column("last_error", sa.Text(), nullable=True, comment="its type, never its message; null after a success"),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("jobs_pkey")),
        comment="what the service does by the clock; no user_sub, for nothing of any user may stand here",
    )
    for statement in ACCESS:
        op.execute(statement)


def downgrade() -> None:
    op.drop_table("jobs")
