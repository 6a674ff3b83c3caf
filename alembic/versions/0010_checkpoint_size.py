"""Adds the size of each part of a checkpoint, by which a checkpoint and a page of them are bounded.

Parts of before have no size, and count with the length of their sealed bytes.

Revision ID: 0010_checkpoint_size
Revises: 0009_replay_anew
"""

from alembic import op

revision = "0010_checkpoint_size"
down_revision = "0009_replay_anew"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("ALTER TABLE checkpoints ADD COLUMN size integer NOT NULL DEFAULT 0")
    op.execute("COMMENT ON COLUMN checkpoints.size IS 'bytes of the words as JSON; 0: stored before sizes were'")


def downgrade() -> None:
    op.execute("ALTER TABLE checkpoints DROP COLUMN size")
