"""Forgets the replays of earlier versions, whose stored numbers this version does not read; the next night makes them.

Revision ID: 0009_replay_anew
Revises: 0008_lessons_later
"""

from alembic import op

revision = "0009_replay_anew"
down_revision = "0008_lessons_later"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("TRUNCATE replays")


def downgrade() -> None:
    op.execute("TRUNCATE replays")
