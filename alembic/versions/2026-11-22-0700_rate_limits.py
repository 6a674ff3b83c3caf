"""How much of their limits users have used, where all replicas see it.

Revision ID: 0009
Revises: 0008
Create Date: 2026-11-22 07:00:00.000000
"""

import sqlalchemy as sa

from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

OWN = "user_sub = nullif(current_setting('app.user_sub', true), '')"

ACCESS = (
    "ALTER TABLE rate_limits ENABLE ROW LEVEL SECURITY",
    "ALTER TABLE rate_limits FORCE ROW LEVEL SECURITY",
    f"CREATE POLICY own_rows ON rate_limits TO casebank_service USING ({OWN}) WITH CHECK ({OWN})",
    "GRANT SELECT, INSERT, UPDATE, DELETE ON rate_limits TO casebank_service",
)


def upgrade() -> None:
    op.create_table(
        "rate_limits",
        sa.Column("user_sub", sa.Text(), nullable=False),
        sa.Column(
            "bucket", sa.LargeBinary(), nullable=False, comment="digest of what is limited: user, agent or session"
        ),
        sa.Column("granted", sa.Integer(), nullable=False, comment="tokens that the last take got"),
        sa.Column("full_at", sa.DateTime(timezone=True), nullable=False, comment="when the bucket will be full"),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("user_sub", "bucket", name=op.f("rate_limits_pkey")),
        prefixes=["UNLOGGED"],  # no disk waits for it: what a crash takes is that everybody begins anew
        comment="how much of their limits users have used; empty after a crash, when everybody begins anew",
    )
    for statement in ACCESS:
        op.execute(statement)


def downgrade() -> None:
    op.drop_table("rate_limits")
