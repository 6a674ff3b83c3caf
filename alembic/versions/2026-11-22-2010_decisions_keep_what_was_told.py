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


def upgrade() -> None:
    op.execute("ALTER TABLE decisions ADD COLUMN told BYTEA")
    op.execute("ALTER TABLE decisions ALTER COLUMN told SET STATISTICS 0")
    op.execute(
        "COMMENT ON COLUMN decisions.told IS 'sealed: what memory_context said; null: it was not kept, or is forgotten'"
    )


def downgrade() -> None:
    op.execute("ALTER TABLE decisions DROP COLUMN told")
