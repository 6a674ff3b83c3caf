-- One index for each usual dimension: an HNSW index needs vectors of one length.
DO $$
DECLARE
    dimension integer;
BEGIN
    FOREACH dimension IN ARRAY ARRAY[256, 384, 512, 768, 1024, 1536] LOOP
        EXECUTE format(
            'CREATE INDEX case_embeddings_hnsw_%1$s_idx ON case_embeddings'
            ' USING hnsw ((embedding::vector(%1$s)) vector_cosine_ops) WHERE approximate AND dimension = %1$s',
            dimension
        );
    END LOOP;
END $$;

-- The query is in a function to be planned anew each time, when the user has entered. Within a larger statement the
-- planner takes this user for an average one, and reads and sorts all their vectors (48 to 70 ms against 10 ms with
-- 15,000 vectors); here it may not sort. The function compares every vector where the index cannot answer: while the
-- profile is not in it, and where so many vectors of other users are near that the scan gives up.
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
END $$;
