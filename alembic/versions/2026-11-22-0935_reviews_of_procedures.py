"""What a person found a version of a procedure to be.

Revision ID: 0020
Revises: 0019
Create Date: 2026-11-22 09:35:00.000000
"""

import sqlalchemy as sa

from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None

OWN = "user_sub = nullif(current_setting('app.user_sub', true), '')"

ACCESS = (
    "ALTER TABLE procedure_reviews ENABLE ROW LEVEL SECURITY",
    "ALTER TABLE procedure_reviews FORCE ROW LEVEL SECURITY",
    f"CREATE POLICY own_rows ON procedure_reviews TO casebank_service USING ({OWN}) WITH CHECK ({OWN})",
    "GRANT SELECT, INSERT, UPDATE, DELETE ON procedure_reviews TO casebank_service",
)


def upgrade() -> None:
    op.create_table(
        "procedure_reviews",
        sa.Column("user_sub", sa.Text(), nullable=False),
        sa.Column("procedure_id", sa.Uuid(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("verdict", sa.Text(), nullable=False),
        sa.Column("root_cause_right", sa.Boolean(), comment="null: not said"),
        sa.Column("steps_complete", sa.Boolean(), comment="null: not said"),
        sa.Column(
            "note", sa.Text(), server_default=sa.text("''"), nullable=False, comment="the reviewer's words, redacted"
        ),
        sa.Column("actor", sa.Text(), nullable=False, comment="who reviewed it"),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint("verdict IN ('good', 'incomplete', 'wrong')", name=op.f("procedure_reviews_verdict_check")),
        sa.ForeignKeyConstraint(
            ["user_sub", "procedure_id", "version"],
            ["procedures.user_sub", "procedures.id", "procedures.version"],
            name=op.f("procedure_reviews_user_sub_procedure_id_version_fkey"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("user_sub", "procedure_id", "version", name=op.f("procedure_reviews_pkey")),
        comment="what a person found a version of a procedure to be; the newest review of each",
    )
    for statement in ACCESS:
        op.execute(statement)


def downgrade() -> None:
    op.drop_table("procedure_reviews")
