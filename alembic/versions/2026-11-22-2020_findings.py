"""Findings of runs, and what kind of tool the names of a profile's tools stand for.

Revision ID: 0032
Revises: 0031
Create Date: 2026-11-22 20:20:00.000000
"""

import re

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from alembic import op

revision = "0032"
down_revision = "0031"
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


def gathered() -> list[str]:
    """The tables whose statistics are gathered now."""
    body = op.get_bind().scalar(sa.text("SELECT prosrc FROM pg_proc WHERE oid = 'casebank_gather_statistics'::regproc"))
    return re.findall(r"\w+", re.search(r"ANALYZE ([^;]*);", body)[1])


def hashes(name: str, comment: str) -> sa.Column:
    kind = postgresql.ARRAY(sa.BigInteger())
    return sa.Column(name, kind, server_default=sa.text("'{}'"), nullable=False, comment=comment)


def upgrade() -> None:
    op.add_column(
        "profiles",
        sa.Column(
            "tool_kinds",
            postgresql.JSONB(),
            server_default=sa.text("'{}'"),
            nullable=False,
            comment="of tools whose names do not tell",
        ),
    )
    op.create_table(
        "findings",
        sa.Column("user_sub", sa.Text(), nullable=False),
        sa.Column("run_id", sa.Uuid(), nullable=False),
        sa.Column("step", sa.Integer(), nullable=False, comment="of the run, whose call found it"),
        sa.Column("part", sa.SmallInteger(), nullable=False, comment="0-based place among the findings of the step"),
        sa.Column("agent_key", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("success", sa.Boolean(), nullable=False),
        sa.Column(
            "query_hash", sa.BigInteger(), nullable=False, comment="keyed: of what was asked, however it was put"
        ),
        hashes("terms", "keyed: of the words of what was asked, where it was asked in words"),
        sa.Column("path_hash", sa.BigInteger(), comment="keyed: of the file that was read"),
        sa.Column("content_hash", sa.BigInteger(), comment="keyed: of the hash of what the file said"),
        sa.Column("first_line", sa.Integer(), comment="of a part of a file; null: all of it was asked for"),
        sa.Column("last_line", sa.Integer(), comment="of what was read of the file"),
        hashes("place_keys", "keyed: what other places are looked for by; none: it is about any file"),
        hashes("place_marks", "keyed: by which this place is found"),
        sa.Column(
            "payload", sa.LargeBinary(), nullable=False, comment="sealed: tool, query, fact and what was read off"
        ),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint("kind IN ('read', 'search', 'answer', 'write', 'other')", name=op.f("findings_kind_check")),
        sa.CheckConstraint("step > 0 AND part >= 0", name=op.f("findings_place_check")),
        sa.ForeignKeyConstraint(
            ["user_sub", "run_id"],
            ["runs.user_sub", "runs.id"],
            name=op.f("findings_user_sub_run_id_fkey"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("user_sub", "run_id", "step", "part", name=op.f("findings_pkey")),
        comment="what the steps of runs found out",
    )
    op.create_index(
        "findings_path_idx",
        "findings",
        ["user_sub", "agent_key", "path_hash"],
        postgresql_where=sa.text("path_hash IS NOT NULL"),
    )
    op.create_index("findings_query_idx", "findings", ["user_sub", "agent_key", "query_hash"])
    op.execute("ALTER TABLE findings ENABLE ROW LEVEL SECURITY")
    op.execute("ALTER TABLE findings FORCE ROW LEVEL SECURITY")
    op.execute(f"CREATE POLICY own_rows ON findings TO casebank_service USING ({OWN}) WITH CHECK ({OWN})")
    op.execute("GRANT SELECT, INSERT, UPDATE, DELETE ON findings TO casebank_service")
    op.execute("ALTER TABLE findings ALTER COLUMN payload SET STATISTICS 0")
    op.execute("ALTER TABLE profiles ALTER COLUMN tool_kinds SET STATISTICS 0")
    op.execute(GATHER.format(tables=", ".join((*gathered(), "findings"))))


def downgrade() -> None:
    op.execute(GATHER.format(tables=", ".join(table for table in gathered() if table != "findings")))
    op.drop_table("findings")
    op.drop_column("profiles", "tool_kinds")
