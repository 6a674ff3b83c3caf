"""A run of which nobody can say how it ended: outcome ``unknown``.

Revision ID: 0014
Revises: 0011
Create Date: 2026-11-22 07:10:12.118203
"""

from alembic import op

revision = "0014"
down_revision = "0011"
branch_labels = None
depends_on = None

BEFORE = ("success", "failure", "partial", "aborted")


def upgrade() -> None:
    _allow((*BEFORE, "unknown"))


def downgrade() -> None:
    op.execute("ALTER TABLE cases NO FORCE ROW LEVEL SECURITY")  # for the owner, who changes every user's rows
    op.execute("UPDATE cases SET outcome = 'aborted' WHERE outcome = 'unknown'")
    op.execute("ALTER TABLE cases FORCE ROW LEVEL SECURITY")
    _allow(BEFORE)


def _allow(outcomes: tuple[str, ...]) -> None:
    name = op.f("cases_outcome_check")
    op.drop_constraint(name, "cases", type_="check")
    op.create_check_constraint(name, "cases", f"outcome IN ({', '.join(map(repr, outcomes))})")
