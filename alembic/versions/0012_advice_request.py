"""Adds the hash of the request for advice, by which a repeated request gets its first answer again.

Revision ID: 0012_advice_request
Revises: 0011_credit_kept
"""

from alembic import op

revision = "0012_advice_request"
down_revision = "0011_credit_kept"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("ALTER TABLE advice ADD COLUMN request integer")
    op.execute("COMMENT ON COLUMN advice.request IS 'keyed hash of the request; null: logged before requests were'")


def downgrade() -> None:
    op.execute("ALTER TABLE advice DROP COLUMN request")
