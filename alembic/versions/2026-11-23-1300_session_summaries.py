"""What language models told of sessions, where a profile asks for it.

Revision ID: 0041
Revises: 0038
Create Date: 2026-11-23 13:00:00.000000
"""

import re

import sqlalchemy as sa

from alembic import op

revision = "0041"
down_revision = "0038"
branch_labels = None
depends_on = None

OWN = "user_sub = nullif(current_setting('app.user_sub', true), '')"

# As 0011 made it, for more tables.
GATHER = """
CREATE OR REPLACE FUNCTION casebank_gather_statistics() RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    ANALYZE {tables};
END $$
"""

PURPOSES = "'rewrite', 'analyse', 'abstract', 'revise'"


def gathered() -> list[str]:
    """The tables whose statistics are gathered now."""
    body = op.get_bind().scalar(sa.text("SELECT prosrc FROM pg_proc WHERE oid = 'casebank_gather_statistics'::regproc"))
    return re.findall(r"\w+", re.search(r"ANALYZE ([^;]*);", body)[1])


def check_purposes(purposes: str) -> None:
    """Puts these in the place of what a language model could be asked for."""
    op.drop_constraint(op.f("llm_usage_purpose_check"), "llm_usage", type_="check")
    op.create_check_constraint(op.f("llm_usage_purpose_check"), "llm_usage", f"purpose IN ({purposes})")


def upgrade() -> None:
    op.create_table(
        "session_summaries",
        sa.Column("user_sub", sa.Text(), nullable=False),
        sa.Column("session_id", sa.Uuid(), nullable=False),
        sa.Column("last_turn", sa.Integer(), nullable=False, comment="it tells of the turns up to that number"),
        sa.Column(
            "payload",
            sa.LargeBinary(),
            nullable=False,
            comment="sealed: what a language model tells of them, line by line",
        ),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint("last_turn > 0", name=op.f("session_summaries_last_turn_check")),
        sa.ForeignKeyConstraint(
            ["user_sub", "session_id"],
            ["sessions.user_sub", "sessions.id"],
            name=op.f("session_summaries_user_sub_session_id_fkey"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("user_sub", "session_id", "last_turn", name=op.f("session_summaries_pkey")),
        comment="what language models told of sessions as they grew; a newer one leaves the older ones as they are",
    )
    op.execute("ALTER TABLE session_summaries ENABLE ROW LEVEL SECURITY")
    op.execute("ALTER TABLE session_summaries FORCE ROW LEVEL SECURITY")
    op.execute(f"CREATE POLICY own_rows ON session_summaries TO casebank_service USING ({OWN}) WITH CHECK ({OWN})")
    op.execute("GRANT SELECT, INSERT, DELETE ON session_summaries TO casebank_service")
    op.execute("ALTER TABLE session_summaries ALTER COLUMN payload SET STATISTICS 0")
    op.add_column(
        "profiles",
        sa.Column(
            "session_summary",
            sa.Text(),
            server_default=sa.text("'rules'"),
            nullable=False,
            comment="who tells of older turns",
        ),
    )
    op.create_check_constraint(
        op.f("profiles_session_summary_check"), "profiles", "session_summary IN ('rules', 'llm')"
    )
    check_purposes(f"{PURPOSES}, 'summarise'")
    op.execute(GATHER.format(tables=", ".join((*gathered(), "session_summaries"))))


def downgrade() -> None:
    op.execute(GATHER.format(tables=", ".join(table for table in gathered() if table != "session_summaries")))
    op.execute("ALTER TABLE llm_usage NO FORCE ROW LEVEL SECURITY")  # the owner deletes everybody's
    op.execute("DELETE FROM llm_usage WHERE purpose = 'summarise'")
    op.execute("ALTER TABLE llm_usage FORCE ROW LEVEL SECURITY")
    check_purposes(PURPOSES)
    op.drop_constraint(op.f("profiles_session_summary_check"), "profiles", type_="check")
    op.drop_column("profiles", "session_summary")
    op.drop_table("session_summaries")
