"""Which cases of a slate a run followed: how well its plan agrees with theirs.

Revision ID: 0044
Revises: 0043
Create Date: 2026-11-24 20:30:00.000000
"""

import sqlalchemy as sa

from alembic import op

revision = "0044"
down_revision = "0043"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column(
        "decision_slots",
        sa.Column(
            "agreed",
            sa.REAL(),
            nullable=True,
            comment="0 to 1: how well the plan of the run that was shown it agrees with the case's; null: not known",
        ),
    )


def downgrade() -> None:
    op.drop_column("decision_slots", "agreed")
