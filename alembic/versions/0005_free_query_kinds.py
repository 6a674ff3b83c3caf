"""Lets the kind of a procedure's request be any words.

Revision ID: 0005_free_query_kinds
Revises: 0004_advice_sessions
"""

from alembic import op

revision = "0005_free_query_kinds"
down_revision = "0004_advice_sessions"
branch_labels = None
depends_on = None

KINDS = "query_kind IN ('find', 'create', 'change', 'remove', 'repair', 'run', 'question', 'other')"


def upgrade() -> None:
    op.execute("ALTER TABLE procedures DROP CONSTRAINT procedures_query_kind_check")


def downgrade() -> None:
    op.execute(f"UPDATE procedures SET query_kind = 'other' WHERE NOT {KINDS}")
    op.execute(f"ALTER TABLE procedures ADD CONSTRAINT procedures_query_kind_check CHECK ({KINDS})")
