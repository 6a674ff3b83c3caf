"""Knowledge of a domain that users keep for an agent, found as turns and facts are.

Revision ID: 0036
Revises: 0035
Create Date: 2026-11-23 02:00:00.000000
"""

import re

import sqlalchemy as sa

from alembic import op

revision = "0036"
down_revision = "0035"
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

SOURCE = (
    "(kind = 'turn') = (session_id IS NOT NULL AND turn_number IS NOT NULL) AND (kind = 'fact') = (fact_id IS NOT NULL)"
)
FOUND = "what finds {} again, and the queue of those that wait for a vector"


def gathered() -> list[str]:
    """The tables whose statistics are gathered now."""
    body = op.get_bind().scalar(sa.text("SELECT prosrc FROM pg_proc WHERE oid = 'casebank_gather_statistics'::regproc"))
    return re.findall(r"\w+", re.search(r"ANALYZE ([^;]*);", body)[1])


def check_memories(kinds: str, source: str) -> None:
    """Puts these in the place of what memories were checked for."""
    for name, condition in (("memories_kind_check", f"kind IN ({kinds})"), ("memories_source_check", source)):
        op.drop_constraint(op.f(name), "memories", type_="check")
        op.create_check_constraint(op.f(name), "memories", condition)


def upgrade() -> None:
    op.create_table(
        "knowledge",
        sa.Column("user_sub", sa.Text(), nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("agent_key", sa.Text(), nullable=False),
        sa.Column("category", sa.Text(), nullable=False),
        sa.Column("entry_type", sa.Text(), nullable=False),
        sa.Column("key_id", sa.Uuid(), nullable=False),
        sa.Column("words", sa.LargeBinary(), nullable=False, comment="sealed: title, text"),
        sa.Column(
            "said",
            sa.LargeBinary(),
            nullable=False,
            comment="keyed hash of category, type, and title, or text without one",
        ),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(
            ["user_sub", "agent_key"],
            ["profiles.user_sub", "profiles.agent_key"],
            name=op.f("knowledge_user_sub_agent_key_fkey"),
        ),
        sa.ForeignKeyConstraint(
            ["user_sub", "key_id"],
            ["user_keys.user_sub", "user_keys.key_id"],
            name=op.f("knowledge_user_sub_key_id_fkey"),
        ),
        sa.PrimaryKeyConstraint("user_sub", "id", name=op.f("knowledge_pkey")),
        comment="what users know of a domain",
    )
    op.create_index("knowledge_said_idx", "knowledge", ["user_sub", "agent_key", "said"], unique=True)
    op.execute("ALTER TABLE knowledge ENABLE ROW LEVEL SECURITY")
    op.execute("ALTER TABLE knowledge FORCE ROW LEVEL SECURITY")
    op.execute(f"CREATE POLICY own_rows ON knowledge TO casebank_service USING ({OWN}) WITH CHECK ({OWN})")
    op.execute("GRANT SELECT, INSERT, UPDATE, DELETE ON knowledge TO casebank_service")
    op.execute("ALTER TABLE knowledge ALTER COLUMN words SET STATISTICS 0")
    op.add_column("memories", sa.Column("knowledge_id", sa.Uuid(), comment="of an entry of knowledge"))
    op.create_foreign_key(
        op.f("memories_user_sub_knowledge_id_fkey"),
        "memories",
        "knowledge",
        ["user_sub", "knowledge_id"],
        ["user_sub", "id"],
        ondelete="CASCADE",
    )
    op.create_index("memories_knowledge_idx", "memories", ["user_sub", "knowledge_id"])
    check_memories("'turn', 'fact', 'knowledge'", f"{SOURCE} AND (kind = 'knowledge') = (knowledge_id IS NOT NULL)")
    op.create_table_comment("memories", FOUND.format("turns, facts and knowledge"))
    op.execute(GATHER.format(tables=", ".join((*gathered(), "knowledge"))))


def downgrade() -> None:
    op.execute(GATHER.format(tables=", ".join(table for table in gathered() if table != "knowledge")))
    op.execute("ALTER TABLE memories NO FORCE ROW LEVEL SECURITY")  # the owner deletes everybody's
    op.execute("DELETE FROM memories WHERE kind = 'knowledge'")
    op.execute("ALTER TABLE memories FORCE ROW LEVEL SECURITY")
    check_memories("'turn', 'fact'", SOURCE)
    op.drop_column("memories", "knowledge_id")
    op.create_table_comment("memories", FOUND.format("turns and facts"))
    op.drop_table("knowledge")
