"""Drops the index on the words of cases: under row-level security no plan uses it.

Revision ID: 0003_drop_word_index
Revises: 0002_updated_at
"""

from alembic import op

revision = "0003_drop_word_index"
down_revision = "0002_updated_at"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("DROP INDEX cases_search_vector_idx")


def downgrade() -> None:
    op.execute("CREATE INDEX cases_search_vector_idx ON cases USING gin (search_vector)")
