"""Adds the time of a case's newest repeat, by which ranking takes a plan that still works for a new one.

Repeats of before are not dated: many of their rows are pruned, and the next repeat of a case dates it.

Revision ID: 0016_repeated_at
Revises: 0015_keyed_hashes
"""

from alembic import op

revision = "0016_repeated_at"
down_revision = "0015_keyed_hashes"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("ALTER TABLE cases ADD COLUMN repeated_at timestamptz")
    op.execute("COMMENT ON COLUMN cases.repeated_at IS 'when its newest repeat was retained; null: none is dated'")


def downgrade() -> None:
    op.execute("ALTER TABLE cases DROP COLUMN repeated_at")
