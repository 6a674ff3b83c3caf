"""Who reviewed a procedure for somebody else is forgotten with their own rows.

Revision ID: 0028
Revises: 0021
Create Date: 2026-11-22 17:50:00.000000
"""

from alembic import op

revision = "0028"
down_revision = "0021"
branch_labels = None
depends_on = None

# As 0011 has it for the other columns that name who acted.
ERASED = "nullif(current_setting('app.erased_name', true), '')"
STONE = f"'erased:' || encode(sha256(convert_to({ERASED}, 'UTF8')), 'hex')"
READ = "user_sub, procedure_id, version, actor"


def upgrade() -> None:
    op.execute(f"GRANT SELECT ({READ}), UPDATE (actor) ON procedure_reviews TO casebank_eraser")
    op.execute(
        "CREATE POLICY erased_name ON procedure_reviews TO casebank_eraser"
        f" USING (actor IN ({ERASED}, {STONE})) WITH CHECK (actor = {STONE})"
    )


def downgrade() -> None:
    op.execute("DROP POLICY erased_name ON procedure_reviews")
    op.execute("REVOKE ALL ON procedure_reviews FROM casebank_eraser")
