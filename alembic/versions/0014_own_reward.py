"""Adds the own reward of a case with repeats, so that a later judgement of its run takes that reward's place alone.

Of cases that had repeats before, it is unknown: the next judgement of such a case's run counts as one more.

Revision ID: 0014_own_reward
Revises: 0013_dead_rows
"""

from alembic import op

revision = "0014_own_reward"
down_revision = "0013_dead_rows"
branch_labels = None
depends_on = None

COMMENT = "of a case with repeats: its own run''s trusted reward, a part of the mean"


def upgrade() -> None:
    op.execute("ALTER TABLE cases ADD COLUMN own_reward real")
    op.execute(f"COMMENT ON COLUMN cases.own_reward IS '{COMMENT}'")


def downgrade() -> None:
    op.execute("ALTER TABLE cases DROP COLUMN own_reward")
