"""Adds indexes of the dead rows of each queue, so that counting them reads no other row.

Revision ID: 0013_dead_rows
Revises: 0012_advice_request
"""

from alembic import op

revision = "0013_dead_rows"
down_revision = "0012_advice_request"
branch_labels = None
depends_on = None

QUEUES = ("cases", "inserted_memories", "memories", "reflections", "sessions")


def upgrade() -> None:
    for queue in QUEUES:
        op.execute(f"CREATE INDEX {queue}_dead_idx ON {queue} (user_sub) WHERE status = 'dead'")


def downgrade() -> None:
    for queue in QUEUES:
        op.execute(f"DROP INDEX {queue}_dead_idx")
