"""The queue's index by user, for users to take turns in it.

Revision ID: 0008
Revises: 0007
Create Date: 2026-11-22 03:55:00.000000
"""

import sqlalchemy as sa

from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

PENDING = sa.text("status = 'pending'")


def upgrade() -> None:
    _replace(["user_sub", "available_at"])


def downgrade() -> None:
    _replace(["available_at"])


def _replace(columns: list[str]) -> None:
    op.drop_index("cases_queue_idx", table_name="cases", postgresql_where=PENDING)
    op.create_index("cases_queue_idx", "cases", columns, unique=False, postgresql_where=PENDING)
