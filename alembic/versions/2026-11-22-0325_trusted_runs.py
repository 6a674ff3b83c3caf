"""How many trusted rewards the reward of a case is the mean of, for the next one to weigh as much as each of them.

Revision ID: 0007
Revises: 0004
Create Date: 2026-11-22 03:25:31.402117
"""

import sqlalchemy as sa

from alembic import op

revision = "0007"
down_revision = "0004"
branch_labels = None
depends_on = None

# Until now a mean was over all the runs of a case: those means keep their weight, for nobody knows what is in them.
FILL = """
UPDATE cases SET trusted_runs = occurrences
WHERE occurrences > 1 AND reward_source <> 'heuristic'
"""


def upgrade() -> None:
    op.add_column(
        "cases",
        sa.Column(
            "trusted_runs",
            sa.Integer(),
            server_default=sa.text("0"),
            nullable=False,
            comment="runs whose trusted rewards the reward is the mean of; 0: its own at most",
        ),
    )
    op.execute("ALTER TABLE cases NO FORCE ROW LEVEL SECURITY")  # for the owner, who fills every user's rows
    op.execute(FILL)
    op.execute("ALTER TABLE cases FORCE ROW LEVEL SECURITY")


def downgrade() -> None:
    op.drop_column("cases", "trusted_runs")
