"""Which rewards of a retrieval judge one of its runs: what is said of one try is no judgement of the next.

Revision ID: 0045
Revises: 0044
Create Date: 2026-11-25 00:30:00.000000
"""

import sqlalchemy as sa

from alembic import op

revision = "0045"
down_revision = "0044"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column(
        "rewards",
        sa.Column(
            "of_run",
            sa.Boolean(),
            nullable=False,
            server_default=sa.false(),
            comment="of a retrieval's: it was given for one of its runs, which was named",
        ),
    )


def downgrade() -> None:
    op.drop_column("rewards", "of_run")
