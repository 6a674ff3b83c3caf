"""Knowledge that an operator writes for all users of an agent, and what finds it.

Revision ID: 0038
Revises: 0036
Create Date: 2026-11-23 08:30:00.000000
"""

import re

import sqlalchemy as sa
from pgvector.sqlalchemy import Vector
from sqlalchemy.dialects import postgresql

from alembic import op

revision = "0038"
down_revision = "0036"
branch_labels = None
depends_on = None

TABLES = ("shared_knowledge", "shared_memories")

# As 0011 made it, for more tables.
GATHER = """
CREATE OR REPLACE FUNCTION casebank_gather_statistics() RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    ANALYZE {tables};
END $$
"""
# As on memories, by 0033's function.
ON_MEMORIES = """
CREATE TRIGGER index_words BEFORE INSERT OR UPDATE OF search_text ON shared_memories
FOR EACH ROW WHEN (NEW.search_text <> '') EXECUTE FUNCTION casebank_index_memory()
"""


def vector_type() -> sa.types.TypeEngine:
    """The type that vectors of cases have: pgvector's where the extension is, else an array."""
    there = sa.text("SELECT count(*) FROM pg_type WHERE typname = 'vector'")
    return Vector() if op.get_bind().scalar(there) else sa.ARRAY(sa.REAL())


def gathered() -> list[str]:
    """The tables whose statistics are gathered now."""
    body = op.get_bind().scalar(sa.text("SELECT prosrc FROM pg_proc WHERE oid = 'casebank_gather_statistics'::regproc"))
    return re.findall(r"\w+", re.search(r"ANALYZE ([^;]*);", body)[1])


def upgrade() -> None:
    op.create_table(
        "shared_knowledge",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("agent_key", sa.Text(), nullable=False),
        sa.Column("category", sa.Text(), nullable=False),
        sa.Column("entry_type", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False, comment="empty: it has none"),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column(
            "said",
            sa.LargeBinary(),
            nullable=False,
            comment="sha256 of category, type, and title, or text without one",
        ),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("shared_knowledge_pkey")),
        comment="what an operator knows of a domain, for all users of an agent; nothing of any user may stand here",
    )
    op.create_index("shared_knowledge_said_idx", "shared_knowledge", ["agent_key", "said"], unique=True)
    op.create_table(
        "shared_memories",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("agent_key", sa.Text(), nullable=False),
        sa.Column("knowledge_id", sa.Uuid(), nullable=False),
        sa.Column(
            "search_text",
            sa.Text(),
            server_default=sa.text("''"),
            nullable=False,
            comment="to be indexed; a trigger empties it",
        ),
        sa.Column("search_vector", postgresql.TSVECTOR(), comment="of search_text, by a trigger"),
        sa.Column(
            "word_count",
            sa.Integer(),
            server_default=sa.text("0"),
            nullable=False,
            comment="of search_text without stop words, by a trigger",
        ),
        sa.Column("model", sa.Text(), comment="of the vector; null: it has none yet, or none can be made"),
        sa.Column("embedding", vector_type(), comment="real[] where pgvector is missing"),
        sa.CheckConstraint("(model IS NULL) = (embedding IS NULL)", name=op.f("shared_memories_vector_check")),
        sa.ForeignKeyConstraint(
            ["knowledge_id"],
            ["shared_knowledge.id"],
            name=op.f("shared_memories_knowledge_id_fkey"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("shared_memories_pkey")),
        comment="what finds shared knowledge",
    )
    op.create_index("shared_memories_agent_idx", "shared_memories", ["agent_key"])
    op.create_index("shared_memories_knowledge_idx", "shared_memories", ["knowledge_id"])
    op.execute(ON_MEMORIES)
    for table in TABLES:
        op.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
        op.execute(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY")
        op.execute(f"CREATE POLICY read_by_all ON {table} FOR SELECT TO casebank_service USING (true)")
        op.execute(f"CREATE POLICY written_by_owner ON {table} TO CURRENT_USER USING (true) WITH CHECK (true)")
        op.execute(f"GRANT SELECT ON {table} TO casebank_service")
    for column in ("search_text", "search_vector", "embedding"):
        op.execute(f"ALTER TABLE shared_memories ALTER COLUMN {column} SET STATISTICS 0")
    op.execute(GATHER.format(tables=", ".join((*gathered(), *TABLES))))


def downgrade() -> None:
    op.execute(GATHER.format(tables=", ".join(table for table in gathered() if table not in TABLES)))
    for table in reversed(TABLES):
        op.drop_table(table)
