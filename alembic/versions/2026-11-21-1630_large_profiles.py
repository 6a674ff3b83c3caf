"""Large profiles: an HNSW index for each usual dimension, and the search that goes through it.

Revision ID: 0002
Revises: 0001
Create Date: 2026-11-21 16:30:12.480215
"""

import sqlalchemy as sa

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

DIMENSIONS = (256, 384, 512, 768, 1024, 1536)

# A function, for its query is planned anew each time, when the user has entered. Within a larger statement the
# planner takes this user for as small as the others, and reads and sorts all their vectors (48 to 70 ms against
# 10 ms, 15,000 vectors); here it may not sort. It answers exactly where the index cannot: while the profile is
# not in it, and where the neighbourhood is so full of others' vectors that the scan gives up.
NEAREST = """
CREATE FUNCTION casebank_nearest(
    p_user_sub text, p_agent_key text, p_model text, p_vector real[], p_approximate boolean, p_count integer
) RETURNS SETOF uuid
LANGUAGE plpgsql STABLE
SET enable_sort = off
SET hnsw.iterative_scan = strict_order
SET hnsw.ef_search = 100
AS $$
DECLARE
    answered bigint;
BEGIN
    IF p_approximate THEN
        RETURN QUERY EXECUTE format(
            'SELECT e.case_id FROM case_embeddings e
             WHERE e.approximate AND e.dimension = %1$s
                 AND e.user_sub = $1 AND e.agent_key = $2 AND e.model = $3
                 AND (SELECT c.status FROM cases c WHERE c.user_sub = $1 AND c.id = e.case_id) = ''ready''
             ORDER BY e.embedding::vector(%1$s) <=> $4::vector(%1$s), e.case_id DESC
             LIMIT $5',
            cardinality(p_vector)
        ) USING p_user_sub, p_agent_key, p_model, p_vector, p_count;
        GET DIAGNOSTICS answered = ROW_COUNT;
        IF answered >= p_count THEN
            RETURN;
        END IF;
    END IF;
    RETURN QUERY
        SELECT e.case_id FROM case_embeddings e
        WHERE e.user_sub = p_user_sub AND e.agent_key = p_agent_key AND e.model = p_model
            AND (SELECT c.status FROM cases c WHERE c.user_sub = p_user_sub AND c.id = e.case_id) = 'ready'
        ORDER BY e.embedding <=> p_vector::vector, e.case_id DESC
        LIMIT p_count;
END $$
"""


def has_iterative_scan() -> bool:
    """Whether the vectors are pgvector's, and its version (0.8 or later) can search on until it has enough."""
    column = sa.text(
        "SELECT format_type(atttypid, atttypmod) FROM pg_attribute"
        " WHERE attrelid = 'case_embeddings'::regclass AND attname = 'embedding'"
    )
    if not str(op.get_bind().scalar(column)).startswith("vector"):
        return False
    op.execute("SELECT '[1]'::vector")  # loads the library, which brings its settings
    return bool(op.get_bind().scalar(sa.text("SELECT count(*) FROM pg_settings WHERE name = 'hnsw.iterative_scan'")))


def upgrade() -> None:
    op.add_column(
        "profiles",
        sa.Column(
            "approximate",
            sa.Boolean(),
            server_default=sa.text("false"),
            nullable=False,
            comment="every vector of the profile is in the HNSW index",
        ),
    )
    op.create_index(
        "cases_retrieval_idx",
        "cases",
        ["user_sub", "retrieval_id"],
        unique=False,
        postgresql_where=sa.text("retrieval_id IS NOT NULL"),
    )
    if has_iterative_scan():
        for dimension in DIMENSIONS:
            op.execute(
                f"CREATE INDEX case_embeddings_hnsw_{dimension}_idx ON case_embeddings"
                f" USING hnsw ((embedding::vector({dimension})) vector_cosine_ops)"
                f" WHERE approximate AND dimension = {dimension}"
            )
        op.execute(NEAREST)


def downgrade() -> None:
    op.execute("DROP FUNCTION IF EXISTS casebank_nearest")
    for dimension in DIMENSIONS:
        op.execute(f"DROP INDEX IF EXISTS case_embeddings_hnsw_{dimension}_idx")
    op.drop_index("cases_retrieval_idx", table_name="cases", postgresql_where=sa.text("retrieval_id IS NOT NULL"))
    op.drop_column("profiles", "approximate")
