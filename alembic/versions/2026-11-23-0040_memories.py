"""What finds turns and facts again: their vectors, and an index of their stemmed words.

Revision ID: 0033
Revises: 0030
Create Date: 2026-11-23 00:40:00.000000
"""

import re

import sqlalchemy as sa
from pgvector.sqlalchemy import Vector
from sqlalchemy.dialects import postgresql

from alembic import op

revision = "0033"
down_revision = "0030"
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

# The text is never stored: it is sealed in the row that it is of.
INDEX_WORDS = """
CREATE FUNCTION casebank_index_memory() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    NEW.search_vector := to_tsvector('english'::regconfig, NEW.search_text);
    NEW.word_count := (SELECT coalesce(sum(cardinality(positions)), 0) FROM unnest(NEW.search_vector));
    NEW.search_text := '';
    RETURN NEW;
END $$
"""
ON_MEMORIES = """
CREATE TRIGGER index_words BEFORE INSERT OR UPDATE OF search_text ON memories
FOR EACH ROW WHEN (NEW.search_text <> '') EXECUTE FUNCTION casebank_index_memory()
"""

# What the worker role may see of everybody's memories: which wait and since when, never their words.
QUEUE_COLUMNS = "user_sub, id, agent_key, status, attempts, available_at, lease_token, created_at"


def vector_type() -> sa.types.TypeEngine:
    """The type that vectors of cases have: pgvector's where the extension is, else an array."""
    there = sa.text("SELECT count(*) FROM pg_type WHERE typname = 'vector'")
    return Vector() if op.get_bind().scalar(there) else sa.ARRAY(sa.REAL())


def gathered() -> list[str]:
    """The tables whose statistics are gathered now."""
    body = op.get_bind().scalar(sa.text("SELECT prosrc FROM pg_proc WHERE oid = 'casebank_gather_statistics'::regproc"))
    return re.findall(r"\w+", re.search(r"ANALYZE ([^;]*);", body)[1])


def columns() -> tuple[sa.Column, ...]:
    """The columns of a memory."""
    return (
        sa.Column("user_sub", sa.Text(), nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("agent_key", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("session_id", sa.Uuid(), comment="of a turn"),
        sa.Column("turn_number", sa.Integer(), comment="of a turn"),
        sa.Column("fact_id", sa.Uuid(), comment="of a fact"),
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
        sa.Column(
            "status",
            sa.Text(),
            server_default=sa.text("'pending'"),
            nullable=False,
            comment="pending: it waits for its vector",
        ),
        sa.Column("attempts", sa.SmallInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("available_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("lease_token", sa.Uuid()),
        sa.Column("last_error", sa.Text()),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
    )


def upgrade() -> None:
    op.create_table(
        "memories",
        *columns(),
        sa.CheckConstraint("kind IN ('turn', 'fact')", name=op.f("memories_kind_check")),
        sa.CheckConstraint("status IN ('pending', 'ready', 'dead')", name=op.f("memories_status_check")),
        sa.CheckConstraint(
            "(kind = 'turn') = (session_id IS NOT NULL AND turn_number IS NOT NULL)"
            " AND (kind = 'fact') = (fact_id IS NOT NULL)",
            name=op.f("memories_source_check"),
        ),
        sa.CheckConstraint("(model IS NULL) = (embedding IS NULL)", name=op.f("memories_vector_check")),
        sa.ForeignKeyConstraint(
            ["user_sub", "agent_key"],
            ["profiles.user_sub", "profiles.agent_key"],
            name=op.f("memories_user_sub_agent_key_fkey"),
        ),
        sa.ForeignKeyConstraint(
            ["user_sub", "session_id", "turn_number"],
            ["turns.user_sub", "turns.session_id", "turns.number"],
            name=op.f("memories_user_sub_session_id_turn_number_fkey"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["user_sub", "fact_id"],
            ["facts.user_sub", "facts.id"],
            name=op.f("memories_user_sub_fact_id_fkey"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("user_sub", "id", name=op.f("memories_pkey")),
        comment="what finds turns and facts again, and the queue of those that wait for a vector",
    )
    op.create_index("memories_agent_idx", "memories", ["user_sub", "agent_key", "kind"])
    op.create_index("memories_turn_idx", "memories", ["user_sub", "session_id", "turn_number"])
    op.create_index("memories_fact_idx", "memories", ["user_sub", "fact_id"])
    op.create_index(
        "memories_queue_idx", "memories", ["user_sub", "available_at"], postgresql_where=sa.text("status = 'pending'")
    )
    op.execute(INDEX_WORDS)
    op.execute(ON_MEMORIES)
    op.execute("ALTER TABLE memories ENABLE ROW LEVEL SECURITY")
    op.execute("ALTER TABLE memories FORCE ROW LEVEL SECURITY")
    op.execute(f"CREATE POLICY own_rows ON memories TO casebank_service USING ({OWN}) WITH CHECK ({OWN})")
    op.execute("GRANT SELECT, INSERT, UPDATE, DELETE ON memories TO casebank_service")
    op.execute("CREATE POLICY queue ON memories TO casebank_worker USING (true)")
    op.execute(f"GRANT SELECT ({QUEUE_COLUMNS}) ON memories TO casebank_worker")
    op.execute("GRANT UPDATE (status, attempts, available_at, lease_token, last_error) ON memories TO casebank_worker")
    for column in ("search_text", "search_vector", "embedding"):
        op.execute(f"ALTER TABLE memories ALTER COLUMN {column} SET STATISTICS 0")
    op.execute(GATHER.format(tables=", ".join((*gathered(), "memories"))))


def downgrade() -> None:
    op.execute(GATHER.format(tables=", ".join(table for table in gathered() if table != "memories")))
    op.drop_table("memories")
    op.execute("DROP FUNCTION casebank_index_memory()")
