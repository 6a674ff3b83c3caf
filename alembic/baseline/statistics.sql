-- What a purge must not leave behind. The planner's statistics keep samples of values: none are gathered of columns
-- that hold a user's words, a digest of them, or their vector, nor of an operator's words. Queries find these rows by
-- their keys. Statistics of names stay, for the plans need them; a purge gathers them anew.
DO $$
DECLARE
    name text;
    names text[];
    word text;
BEGIN
    FOR name, names IN VALUES
        ('user_keys', '{wrapped_key}'),
        ('profiles', '{tool_kinds}'),
        ('decisions', '{query, features, scores, rewritten, words, query_group, told}'),
        ('policies', '{weights, checksum, metrics, verdict}'),
        ('replays', '{tallies, fit}'),
        ('turns', '{payload}'),
        ('session_summaries', '{payload}'),
        ('cases', '{task, plan, tools, tags, search_text, search_vector, message_hash, idempotency_key, '
            'request_hash, payload, last_error, effects, source, words, terms, moves}'),
        ('case_embeddings', '{embedding}'),
        ('case_tools', '{tool, forms, failures}'),
        ('failures', '{tool, sign, error, call, fix, fix_id, words}'),
        ('advice', '{sign, fix_ids}'),
        ('procedures', '{record, task_type, trigger, domain, search_text, search_vector, embedding}'),
        ('procedure_reviews', '{note, actor}'),
        ('rewards', '{actor}'),
        ('runs', '{words}'),
        ('run_steps', '{payload}'),
        ('findings', '{payload}'),
        ('facts', '{words}'),
        ('knowledge', '{words}'),
        ('checkpoints', '{thread, namespace, task, words}'),
        ('memories', '{search_text, search_vector, embedding}'),
        ('shared_memories', '{search_text, search_vector, embedding}'),
        ('audit', '{actor, payload, mac}'),
        ('audit_links', '{hash}'),
        ('audit_heads', '{hash, pruned_hash, seal}'),
        ('erasures', '{user_sub, receipt}'),
        ('erasure_links', '{user_sha256, hash}'),
        ('erasure_heads', '{hash, seal}'),
        ('installation_keys', '{wrapped_key}'),
        ('token_revocations', '{jti_sha256, subject_sha256, why}'),
        ('readmissions', '{user_sha256, actor_sha256}')
    LOOP
        FOREACH word IN ARRAY names LOOP
            EXECUTE format('ALTER TABLE %I ALTER COLUMN %I SET STATISTICS 0', name, word);
        END LOOP;
    END LOOP;
END $$;

-- Only an owner may gather statistics, and the service owns no table. On a Citus cluster, tables that each node has a copy
-- of come first: once a distributed table's shards were visited beside each other, these are refused.
CREATE FUNCTION casebank_gather_statistics() RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    ANALYZE
        erasures, shared_knowledge, shared_memories,
        audit, case_embeddings, case_tools, cases, decision_slots, decisions, llm_usage, policies,
        procedures, profiles, rate_limits, rewards, user_keys, audit_links, audit_heads, procedure_reviews,
        runs, run_steps, findings, sessions, turns, facts, memories, knowledge, session_summaries, replays, failures,
        advice, checkpoints, reflections;
END $$;
REVOKE ALL ON FUNCTION casebank_gather_statistics() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION casebank_gather_statistics() TO casebank_service;
