-- Hybrid search over all agents of a user, for flows that call it by this name on a Postgres of their own. The rights
-- are the caller's, and row-level security with them; the function filters by the user all the same, for a role that
-- bypasses it. What is sealed is null in the answer. The ranks, and the numbers in the formula of the keywords, are those of
-- retrieval/search/keywords.py; a test compares the ranks.
CREATE FUNCTION hybrid_search_context_eng_memories(
    query_text text,
    query_embedding {vector},
    match_count integer,
    full_text_weight double precision DEFAULT 1,
    semantic_weight double precision DEFAULT 1,
    rrf_k integer DEFAULT 50
) RETURNS TABLE (
    id uuid,
    content text,
    metadata jsonb,
    created_dt timestamptz,
    keyword_rank bigint,
    semantic_rank bigint,
    rrf double precision
)
LANGUAGE sql STABLE SECURITY INVOKER
AS $$
    WITH mine AS MATERIALIZED (
        SELECT c.id, c.agent_key, c.search_vector, p.embedding_model
        FROM cases c JOIN profiles p ON p.user_sub = c.user_sub AND p.agent_key = c.agent_key
        WHERE c.user_sub = nullif(current_setting('app.user_sub', true), '')
            AND p.enabled AND c.status = 'ready' AND c.outcome <> 'aborted'
    ),
    each_word AS MATERIALIZED (
        SELECT DISTINCT word
        FROM regexp_split_to_table(plainto_tsquery('english', query_text)::text, ' & ') AS words(word) WHERE word <> ''
    ),
    newest AS MATERIALIZED (
        SELECT search_vector FROM mine ORDER BY id DESC
        LIMIT (SELECT least(2000, 20000 / greatest(count(*), 1)) FROM each_word)
    ),
    whole AS MATERIALIZED (
        SELECT count(*)::float AS cases, greatest(avg(length(search_vector)), 1)::float AS mean_length FROM newest
    ),
    rare AS MATERIALIZED (
        SELECT e.word, -ln((seen.texts + .5) / (w.cases + 1)) / ln(2.0::float) AS bits
        FROM each_word e CROSS JOIN whole w CROSS JOIN LATERAL (
            SELECT count(*) AS texts FROM newest n WHERE n.search_vector @@ e.word::tsquery
        ) seen
    ),
    alike AS MATERIALIZED (
        SELECT string_agg(word, ' | ')::tsquery AS words, sum(bits) AS worth
        FROM rare GROUP BY least(round(bits), 11)
    ),
    any_word AS MATERIALIZED (SELECT string_agg(word, ' | ')::tsquery AS words FROM rare),
    relevant AS MATERIALIZED (
        SELECT m.id, (
            SELECT sum(a.worth * ts_rank('{.1,.1,.1,.1}', m.search_vector, a.words)) FROM alike a
        ) / (1 + 1.2 * (.25 + .75 * length(m.search_vector) / w.mean_length)) AS relevance
        FROM mine m CROSS JOIN whole w JOIN any_word o ON m.search_vector @@ o.words
    ),
    keyword AS (SELECT id, row_number() OVER (ORDER BY relevance DESC, id DESC) AS place FROM relevant),
    near AS MATERIALIZED (
        SELECT m.id, {distance} AS distance
        FROM mine m JOIN case_embeddings e ON e.agent_key = m.agent_key AND e.model = m.embedding_model
            AND e.case_id = m.id
        WHERE e.user_sub = nullif(current_setting('app.user_sub', true), '')
            AND e.dimension = {dimension}
    ),
    semantic AS (
        SELECT n.id, row_number() OVER (ORDER BY n.distance, n.id DESC) AS place FROM near n
    ),
    best AS (
        SELECT
            coalesce(k.id, s.id) AS id,
            k.place AS keyword_rank,
            s.place AS semantic_rank,
            coalesce(full_text_weight / (rrf_k + k.place), 0)
                + coalesce(semantic_weight / (rrf_k + s.place), 0) AS rrf
        FROM keyword k FULL JOIN semantic s ON s.id = k.id
        ORDER BY rrf DESC, id DESC
        LIMIT least(greatest(coalesce(match_count, 4), 0), 50)
    )
    SELECT
        b.id,
        CASE WHEN c.words IS NULL THEN c.task END,
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
        ),
        c.created_at,
        b.keyword_rank,
        b.semantic_rank,
        b.rrf
    FROM best b
    JOIN cases c ON c.user_sub = nullif(current_setting('app.user_sub', true), '') AND c.id = b.id
    LEFT JOIN LATERAL (
        SELECT p.kind, p.record
        FROM procedures p
        WHERE p.user_sub = c.user_sub AND p.status = 'active' AND p.level IS NULL
            AND (p.case_id = c.id OR c.id = ANY (p.source_case_ids))
        ORDER BY (p.case_id IS NOT DISTINCT FROM c.id) DESC, p.kind DESC, p.id
        LIMIT 1
    ) taught ON true
    ORDER BY b.rrf DESC, b.id DESC
$$;
COMMENT ON FUNCTION hybrid_search_context_eng_memories IS
    'the memories of the user whom casebank_enter named. content is null where words are sealed (CASEBANK_SEAL=all): the service has the key, Postgres has none. GET /v1/cases/{id} opens them';
GRANT EXECUTE ON FUNCTION hybrid_search_context_eng_memories TO casebank_service;
