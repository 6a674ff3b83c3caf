"""What kind of thing the run behind a procedure was asked for, how well it went, and how long it took.

Revision ID: 0019
Revises: 0012
Create Date: 2026-11-22 09:30:00.000000
"""

import sqlalchemy as sa

from alembic import op

revision = "0019"
down_revision = "0012"
branch_labels = None
depends_on = None

QUERY_KINDS = "query_kind IN ('find', 'create', 'change', 'remove', 'repair', 'run', 'question', 'other')"
COLUMNS = (
    sa.Column(
        "query_kind", sa.Text(), comment="what kind of thing its run was asked for; null: older than this column"
    ),
    sa.Column("success_score", sa.REAL(), comment="of its run, 0 to 1; null: older than this column"),
    sa.Column("duration_ms", sa.REAL(), comment="of all calls of its run together; null: not told"),
)


def upgrade() -> None:
    for column in COLUMNS:
        op.add_column("procedures", column)
    op.create_check_constraint(op.f("procedures_query_kind_check"), "procedures", QUERY_KINDS)


def downgrade() -> None:
    for column in reversed(COLUMNS):
        op.drop_column("procedures", column.name)
