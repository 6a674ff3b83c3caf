"""What a purge leaves behind: sealed words, no statistics of words, no names in others' rows, and signed receipts.

Revision ID: 0011
Revises: 0013
Create Date: 2026-11-22 06:55:00
"""

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from alembic import op

revision = "0011"
down_revision = "0013"
branch_labels = None
depends_on = None

# Roles belong to the whole cluster, so another database may have made it already.
ROLE = """
DO $$ BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'casebank_eraser') THEN
        CREATE ROLE casebank_eraser NOLOGIN NOINHERIT;
    END IF;
    GRANT casebank_eraser TO casebank_service;
EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
END $$
"""

ERASED = "nullif(current_setting('app.erased_name', true), '')"
STONE = f"'erased:' || encode(sha256(convert_to({ERASED}, 'UTF8')), 'hex')"

# Where the name of a user may stand in the rows of others, for whom that user acted.
NAMES = {"audit": "actor", "rewards": "actor", "cases": "source"}

# What may hold a user's words, a digest of them, or the vector of them. The planner does without: the statements find
# these rows by their keys. Names stay in the statistics, for the plans need them; a purge has them gathered anew.
WORDS = {
    "audit": ("actor", "payload"),
    "case_embeddings": ("embedding",),
    "case_tools": ("tool", "forms", "failures"),
    "cases": (
        "task",
        "plan",
        "words",
        "tools",
        "effects",
        "tags",
        "search_text",
        "search_vector",
        "message_hash",
        "idempotency_key",
        "request_hash",
        "payload",
        "source",
        "last_error",
    ),
    "decisions": ("query", "rewritten", "words", "query_group", "query_vector", "features", "scores"),
    "policies": ("weights", "checksum", "metrics", "verdict", "contributors"),
    "procedures": ("record", "task_type", "trigger", "domain", "search_text", "search_vector", "embedding"),
    "rewards": ("actor",),
    "user_keys": ("wrapped_key",),
    "erasures": ("user_sub", "receipt"),
}

# Turning statistics off leaves those that were gathered before; PostgreSQL 18 can drop them for who owns the table.
CLEAR = """
DO $$ BEGIN
    IF to_regproc('pg_catalog.pg_clear_attribute_stats') IS NOT NULL THEN
        PERFORM pg_clear_attribute_stats(current_schema()::text, '{table}', '{column}', false);
    ELSIF (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
        DELETE FROM pg_statistic WHERE starelid = '{table}'::regclass
            AND staattnum = (SELECT attnum FROM pg_attribute
                             WHERE attrelid = '{table}'::regclass AND attname = '{column}');
    END IF;
END $$
"""

# The service owns no table, and only an owner may gather statistics.
GATHER = """
CREATE FUNCTION casebank_gather_statistics() RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    ANALYZE {tables};
END $$
"""
# The text that is searched is never stored: of the words that are sealed elsewhere in the row, the index is enough.
INDEX_WORDS = """
CREATE FUNCTION casebank_index_words() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    NEW.search_vector := to_tsvector('english'::regconfig, NEW.search_text);
    NEW.search_text := '';
    RETURN NEW;
END $$
"""
ON_CASES = """
CREATE TRIGGER index_words BEFORE INSERT OR UPDATE OF search_text ON cases
FOR EACH ROW WHEN (NEW.search_text <> '') EXECUTE FUNCTION casebank_index_words()
"""

TABLES = (
    "audit",
    "case_embeddings",
    "case_tools",
    "cases",
    "decision_slots",
    "decisions",
    "erasures",
    "llm_usage",
    "policies",
    "procedures",
    "profiles",
    "rate_limits",
    "rewards",
    "user_keys",
)


def seal_words() -> None:
    """Room for words that are sealed."""
    op.add_column(
        "cases",
        sa.Column("words", sa.LargeBinary(), comment="sealed: task, plan; null: they stand in their columns"),
    )
    op.execute("COMMENT ON COLUMN cases.plan IS 'of sealed words: a token for each step'")
    op.add_column(
        "decisions",
        sa.Column("words", sa.LargeBinary(), comment="sealed: query, rewritten; null: they stand in their columns"),
    )
    op.add_column(
        "decisions",
        sa.Column("query_group", sa.BigInteger(), comment="of sealed words: the same for equal queries of the user"),
    )
    op.execute("ALTER TABLE cases ALTER COLUMN search_vector DROP EXPRESSION")
    op.execute("ALTER TABLE cases ALTER COLUMN search_text SET DEFAULT ''")
    op.execute("COMMENT ON COLUMN cases.search_text IS 'to be indexed; a trigger empties it'")
    op.execute("COMMENT ON COLUMN cases.search_vector IS 'of search_text, by a trigger'")
    op.execute("ALTER TABLE cases NO FORCE ROW LEVEL SECURITY")  # for the owner, who changes every user's rows
    op.execute("UPDATE cases SET search_text = '' WHERE search_text <> ''")
    op.execute("ALTER TABLE cases FORCE ROW LEVEL SECURITY")
    op.execute(INDEX_WORDS)
    op.execute(ON_CASES)


def unseal_words() -> None:
    """Back to words in their columns alone. Words that are sealed stay behind: they are gone with their column."""
    op.execute("DROP TRIGGER index_words ON cases")
    op.execute("DROP FUNCTION casebank_index_words()")
    op.execute("ALTER TABLE cases NO FORCE ROW LEVEL SECURITY")
    op.execute("UPDATE cases SET search_text = concat_ws(E'\\n', task, array_to_string(plan, E'\\n'))")
    op.execute("ALTER TABLE cases FORCE ROW LEVEL SECURITY")
    op.drop_index("cases_search_vector_idx", table_name="cases")
    op.drop_column("cases", "search_vector")
    op.add_column(
        "cases",
        sa.Column(
            "search_vector",
            postgresql.TSVECTOR(),
            sa.Computed("to_tsvector('english'::regconfig, search_text)", persisted=True),
        ),
    )
    op.create_index("cases_search_vector_idx", "cases", ["search_vector"], postgresql_using="gin")
    op.execute("ALTER TABLE cases ALTER COLUMN search_text DROP DEFAULT")
    op.execute("COMMENT ON COLUMN cases.search_text IS NULL")
    op.execute("COMMENT ON COLUMN cases.plan IS NULL")
    for table, column in (("cases", "words"), ("decisions", "words"), ("decisions", "query_group")):
        op.drop_column(table, column)


def upgrade() -> None:
    op.execute(ROLE)
    seal_words()
    for table, columns in WORDS.items():
        for column in columns:
            op.execute(f"ALTER TABLE {table} ALTER COLUMN {column} SET STATISTICS 0")
            op.execute(CLEAR.format(table=table, column=column))
    op.execute(GATHER.format(tables=", ".join(TABLES)))
    op.execute("REVOKE ALL ON FUNCTION casebank_gather_statistics() FROM PUBLIC")
    op.execute("GRANT EXECUTE ON FUNCTION casebank_gather_statistics() TO casebank_service")
    for table, column in NAMES.items():
        op.execute(f"GRANT SELECT (user_sub, id, {column}), UPDATE ({column}) ON {table} TO casebank_eraser")
        op.execute(
            f"CREATE POLICY erased_name ON {table} TO casebank_eraser"
            f" USING ({column} IN ({ERASED}, {STONE})) WITH CHECK ({column} = {STONE})"
        )
    op.execute("GRANT SELECT, UPDATE (receipt) ON erasures TO casebank_eraser")
    op.execute("CREATE POLICY every_receipt ON erasures TO casebank_eraser USING (true)")
    op.alter_column(
        "erasures",
        "receipt",
        existing_type=postgresql.JSONB(astext_type=sa.Text()),
        existing_nullable=False,
        existing_comment="rows deleted, by table",
        comment="what was erased, place by place, signed; it holds no name",
    )


def downgrade() -> None:
    op.alter_column(
        "erasures",
        "receipt",
        existing_type=postgresql.JSONB(astext_type=sa.Text()),
        existing_nullable=False,
        existing_comment="what was erased, place by place, signed; it holds no name",
        comment="rows deleted, by table",
    )
    op.execute("DROP POLICY every_receipt ON erasures")
    op.execute("REVOKE ALL ON erasures FROM casebank_eraser")
    for table in NAMES:
        op.execute(f"DROP POLICY erased_name ON {table}")
        op.execute(f"REVOKE ALL ON {table} FROM casebank_eraser")
    op.execute("DROP FUNCTION casebank_gather_statistics()")
    for table, columns in WORDS.items():
        for column in columns:
            op.execute(f"ALTER TABLE {table} ALTER COLUMN {column} SET STATISTICS -1")
    unseal_words()
