"""Adds the session that asked for advice at a failed call.

Revision ID: 0004_advice_sessions
Revises: 0003_drop_word_index
"""

from alembic import op

revision = "0004_advice_sessions"
down_revision = "0003_drop_word_index"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("ALTER TABLE advice ADD COLUMN session_id uuid")
    op.execute("COMMENT ON COLUMN advice.session_id IS 'of the session that asked; null: none, or one that is gone'")
    op.execute(
        "ALTER TABLE advice ADD CONSTRAINT advice_user_sub_session_id_fkey"
        " FOREIGN KEY (user_sub, session_id) REFERENCES sessions (user_sub, id)"
    )
    op.execute("CREATE INDEX advice_session_idx ON advice (user_sub, session_id) WHERE session_id IS NOT NULL")


def downgrade() -> None:
    op.execute("ALTER TABLE advice DROP COLUMN session_id")
