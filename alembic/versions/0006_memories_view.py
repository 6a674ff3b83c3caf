"""Adds a view of a user's memories with the columns of flows that had a table of that name.

It has the rows and the values of the function ``hybrid_search_context_eng_memories``, and the vector of each.

Revision ID: 0006_memories_view
Revises: 0005_free_query_kinds
"""

from alembic import op

revision = "0006_memories_view"
down_revision = "0005_free_query_kinds"
branch_labels = None
depends_on = None

VIEW = """
CREATE VIEW context_eng_memories WITH (security_invoker = true) AS
SELECT
    c.id,
    CASE WHEN c.words IS NULL THEN c.task END AS content,
    jsonb_build_object(
        'status', CASE
            WHEN taught.kind = 'failure_lesson' THEN 'failure_lesson'
            WHEN taught.kind IS NOT NULL THEN 'procedure_learned'
            WHEN c.error_count = 0 THEN 'no_failure_detected'
        END,
        'data', taught.record,
        'agent', c.agent_key,
        'kind', c.kind,
        'outcome', c.outcome,
        'reward', c.reward,
        'tags', c.tags,
        'plan', CASE WHEN c.words IS NULL THEN to_jsonb(c.plan) END
    ) AS metadata,
    e.embedding,
    c.search_vector AS fts,
    c.created_at AS created_dt,
    c.agent_key AS agent
FROM cases c
JOIN profiles p ON p.user_sub = c.user_sub AND p.agent_key = c.agent_key
LEFT JOIN case_embeddings e ON e.user_sub = c.user_sub AND e.agent_key = c.agent_key
    AND e.model = p.embedding_model AND e.case_id = c.id
LEFT JOIN LATERAL (
    SELECT p.kind, p.record
    FROM procedures p
    WHERE p.user_sub = c.user_sub AND p.status = 'active' AND p.level IS NULL
        AND (p.case_id = c.id OR c.id = ANY (p.source_case_ids))
    ORDER BY (p.case_id IS NOT DISTINCT FROM c.id) DESC, p.kind DESC, p.id
    LIMIT 1
) taught ON true
WHERE c.user_sub = nullif(current_setting('app.user_sub', true), '')
    AND p.enabled AND c.status = 'ready' AND c.outcome <> 'aborted'
"""
COMMENT = (
    "the memories of the user whom casebank_enter named. content is null where words are sealed (CASEBANK_SEAL=all):"
    " the service has the key, Postgres has none"
)


def upgrade() -> None:
    op.execute(VIEW)
    op.execute(f"COMMENT ON VIEW context_eng_memories IS '{COMMENT}'")
    op.execute("GRANT SELECT ON context_eng_memories TO casebank_service")


def downgrade() -> None:
    op.execute("DROP VIEW context_eng_memories")
