"""The name of a vector space tells its dimension, so that vectors of two lengths under one model never meet.

Revision ID: 0007
Revises: 0006
Create Date: 2026-11-22 03:45:00.000000
"""

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

# Of the embedder that comes with casebank, whose name tells the dimension already.
BUNDLED = "wordllama-%"

# Profiles first: what their vectors' dimension is, the vectors tell while they still have the old name.
RENAME = {
    "profiles": (
        "UPDATE profiles p SET embedding_model = embedding_model || '@' || ("
        " SELECT e.dimension FROM case_embeddings e WHERE e.user_sub = p.user_sub AND e.agent_key = p.agent_key"
        " AND e.model = p.embedding_model ORDER BY e.case_id DESC LIMIT 1)"
        " WHERE embedding_model NOT LIKE :bundled"
    ),
    "case_embeddings": "UPDATE case_embeddings SET model = model || '@' || dimension WHERE model NOT LIKE :bundled",
    "procedures": (
        "UPDATE procedures SET embedding_model = embedding_model || '@' || cardinality(embedding)"
        " WHERE embedding_model NOT LIKE :bundled"
    ),
    "decisions": (
        "UPDATE decisions SET query_model = query_model || '@' || cardinality(query_vector)"
        " WHERE query_model NOT LIKE :bundled"
    ),
}
RESTORE = {
    "profiles": "UPDATE profiles SET embedding_model = regexp_replace(embedding_model, '@[0-9]+$', '')",
    "case_embeddings": "UPDATE case_embeddings SET model = regexp_replace(model, '@[0-9]+$', '')",
    "procedures": "UPDATE procedures SET embedding_model = regexp_replace(embedding_model, '@[0-9]+$', '')",
    "decisions": "UPDATE decisions SET query_model = regexp_replace(query_model, '@[0-9]+$', '')",
}


def upgrade() -> None:
    _run(RENAME)


def downgrade() -> None:
    _run(RESTORE)


def _run(statements: dict[str, str]) -> None:
    for table in statements:  # for the owner, who renames every user's rows
        op.execute(f"ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY")
    for statement in statements.values():
        op.execute(statement.replace(":bundled", f"'{BUNDLED}'"))
    for table in statements:
        op.execute(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY")
