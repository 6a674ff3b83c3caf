"""Lets the worker learn from a run after its case can be found.

Revision ID: 0008_lessons_later
Revises: 0007_insert_memories
"""

from alembic import op

revision = "0008_lessons_later"
down_revision = "0007_insert_memories"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("ALTER TABLE reflections ADD COLUMN is_new boolean NOT NULL DEFAULT false")
    op.execute("COMMENT ON COLUMN reflections.is_new IS 'nothing was learned from the run yet'")
    op.execute(
        "COMMENT ON TABLE reflections IS 'the queue of findable cases to learn from: new ones, and those whose run"
        " turned out later to have failed'"
    )


def downgrade() -> None:
    op.execute("ALTER TABLE reflections DROP COLUMN is_new")
