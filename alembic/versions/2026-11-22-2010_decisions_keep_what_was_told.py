"""A decision keeps what was told, so that it can be asked about later.

Revision ID: 0031
Revises: 0028
Create Date: 2026-11-22 20:10:00.000000
"""

from alembic import op

revision = "0031"
down_revision = "0028"
branch_labels = None
depends_on = None

WORDS = "sealed: {}; null: they stand in their columns"


def upgrade() -> None:
    op.execute("ALTER TABLE decisions ADD COLUMN told TEXT")
    op.execute("ALTER TABLE decisions ALTER COLUMN told SET STATISTICS 0")
    op.execute(
        "COMMENT ON COLUMN decisions.told IS 'what memory_context said; null: it is in words, or was not kept yet'"
    )
    op.execute(f"COMMENT ON COLUMN decisions.words IS '{WORDS.format('query, rewritten, told')}'")


def downgrade() -> None:
    op.execute(f"COMMENT ON COLUMN decisions.words IS '{WORDS.format('query, rewritten')}'")
    op.execute("ALTER TABLE decisions DROP COLUMN told")
