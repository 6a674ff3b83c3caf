-- Sets a value until the transaction ends. On a Citus cluster only the statement takes it to the other nodes.
CREATE FUNCTION casebank_set(p_name text, p_value text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('citus.propagate_set_commands', true) = 'local' THEN
        EXECUTE format('SET LOCAL %s = %L', p_name, p_value);
    ELSE
        PERFORM set_config(p_name, p_value, true);
    END IF;
END $$;

-- Every transaction of a user calls this first. The shared lock lasts until the transaction ends and keeps an erasure
-- out, which takes the same lock exclusively; the check refuses callers that were authorised before the last erasure.
-- In a transaction that has entered it does nothing: on a Citus cluster the node that was called enters, and a statement
-- that it sends to a shard calls this there.
CREATE FUNCTION casebank_enter(p_user_sub text, p_authorised_at timestamptz) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    v_erased_at timestamptz;
BEGIN
    IF current_setting('app.user_sub', true) = p_user_sub THEN
        RETURN true;
    END IF;
    PERFORM casebank_set('app.user_sub', p_user_sub);
    PERFORM pg_advisory_xact_lock_shared(hashtextextended(p_user_sub, 0));
    SELECT max(erased_at) INTO v_erased_at FROM erasures
    WHERE user_sub = encode(sha256(convert_to(p_user_sub, 'UTF8')), 'hex') AND erased_at >= p_authorised_at;
    IF v_erased_at IS NOT NULL THEN
        RAISE EXCEPTION 'the user was erased' USING ERRCODE = 'CB410',
            DETAIL = to_char(v_erased_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"+00:00"');
    END IF;
    RETURN true;
END $$;

-- Row-level security holds on every table, for the owner of the tables, too.
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY string_to_array(
        'advice audit audit_heads audit_links case_embeddings case_tools cases checkpoints decision_slots decisions '
        'erasure_heads erasure_links erasures facts failures findings installation_keys jobs knowledge llm_usage master_keys '
        'memories policies procedure_reviews procedures profiles rate_limits readmissions reflections replays rewards run_steps runs '
        'session_summaries sessions shared_knowledge shared_memories token_revocations turns user_keys',
        ' '
    ) LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
    END LOOP;
END $$;

-- The service sees and writes the rows of the user who entered, and no others.
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY string_to_array(
        'advice audit case_embeddings case_tools cases checkpoints decision_slots decisions facts failures findings knowledge '
        'llm_usage memories policies procedure_reviews procedures profiles rate_limits reflections replays rewards run_steps runs '
        'session_summaries sessions turns user_keys',
        ' '
    ) LOOP
        EXECUTE format(
            'CREATE POLICY own_rows ON %I TO casebank_service'
            ' USING (user_sub = nullif(current_setting(''app.user_sub'', true), ''''))'
            ' WITH CHECK (user_sub = nullif(current_setting(''app.user_sub'', true), ''''))',
            name
        );
    END LOOP;
END $$;
GRANT SELECT, INSERT, UPDATE, DELETE ON
    advice, case_embeddings, case_tools, cases, checkpoints, decision_slots, decisions, facts, failures, findings,
    knowledge,
    llm_usage, memories, policies, procedure_reviews, procedures, profiles, rate_limits, reflections, replays, rewards,
    run_steps, runs,
    sessions, turns, user_keys
    TO casebank_service;
GRANT SELECT, INSERT, DELETE ON audit, session_summaries TO casebank_service;
-- `casebank doctor` compares the schema's revision, also with the service's login
GRANT SELECT ON alembic_version TO casebank_service;

CREATE POLICY owner_counts ON policies FOR SELECT TO CURRENT_USER USING (true);  -- for casebank_count_policies

-- The worker claims pending rows of any user: it sees whose they are and since when, and none of the words.
CREATE POLICY queue ON cases TO casebank_worker USING (true);
CREATE POLICY queue ON sessions TO casebank_worker USING (true);
CREATE POLICY queue ON memories TO casebank_worker USING (true);
CREATE POLICY queue ON reflections TO casebank_worker USING (true);
CREATE POLICY queue ON profiles FOR SELECT TO casebank_worker USING (true);
GRANT
    SELECT (user_sub, id, agent_key, status, attempts, available_at, lease_token, created_at),
    UPDATE (status, attempts, available_at, lease_token, last_error)
    ON cases, sessions, memories, reflections TO casebank_worker;
GRANT SELECT (user_sub, agent_key, embedding_model) ON profiles TO casebank_worker;

-- Knowledge of the operator: every user reads it, and the owner of the tables alone writes it.
CREATE POLICY read_by_all ON shared_knowledge FOR SELECT TO casebank_service USING (true);
CREATE POLICY read_by_all ON shared_memories FOR SELECT TO casebank_service USING (true);
CREATE POLICY written_by_owner ON shared_knowledge TO CURRENT_USER USING (true) WITH CHECK (true);
CREATE POLICY written_by_owner ON shared_memories TO CURRENT_USER USING (true) WITH CHECK (true);
GRANT SELECT ON shared_knowledge, shared_memories TO casebank_service;

-- The chains of the audit. Their triggers run as the owner, a plain role where the login is no superuser, and
-- therefore need policies for every role. The worker, which checks and seals the chains of all users, sees whose there
-- are and who was erased.
CREATE POLICY own_rows ON audit_links
USING (user_sub = nullif(current_setting('app.user_sub', true), ''))
WITH CHECK (user_sub = nullif(current_setting('app.user_sub', true), ''));
CREATE POLICY own_rows ON audit_heads
USING (user_sub = nullif(current_setting('app.user_sub', true), ''))
WITH CHECK (user_sub = nullif(current_setting('app.user_sub', true), ''));
GRANT SELECT, DELETE ON audit_links, audit_heads TO casebank_service;
GRANT UPDATE (sealed_seq, seal, pruned_seq, pruned_hash) ON audit_heads TO casebank_service;
CREATE POLICY chains ON audit FOR SELECT TO casebank_worker USING (true);
CREATE POLICY chains ON audit_links FOR SELECT TO casebank_worker USING (true);
CREATE POLICY chains ON audit_heads FOR SELECT TO casebank_worker USING (true);
CREATE POLICY chains ON erasures FOR SELECT TO casebank_worker USING (true);
GRANT SELECT (user_sub) ON audit, audit_links TO casebank_worker;
GRANT SELECT (user_sub, seq, sealed_seq) ON audit_heads TO casebank_worker;
GRANT SELECT (user_sub, erased_at) ON erasures TO casebank_worker;
CREATE POLICY chain ON erasure_links USING (true) WITH CHECK (true);
CREATE POLICY chain ON erasure_heads USING (true) WITH CHECK (true);
GRANT SELECT ON erasure_links, erasure_heads TO casebank_worker;
GRANT UPDATE (sealed_seq, seal) ON erasure_heads TO casebank_worker;

-- Erasures: the service records one under a digest of the user's name. The eraser writes the receipt, and replaces the
-- name by that digest in rows of others for whom the user acted.
CREATE POLICY own_rows ON erasures TO casebank_service
USING (user_sub = encode(sha256(convert_to(nullif(current_setting('app.user_sub', true), ''), 'UTF8')), 'hex'))
WITH CHECK (user_sub = encode(sha256(convert_to(nullif(current_setting('app.user_sub', true), ''), 'UTF8')), 'hex'));
GRANT SELECT, INSERT ON erasures TO casebank_service;
CREATE POLICY every_receipt ON erasures TO casebank_eraser USING (true);
GRANT SELECT, UPDATE (receipt) ON erasures TO casebank_eraser;
DO $$
DECLARE
    name text;
    actor text;
    erased text := 'nullif(current_setting(''app.erased_name'', true), '''')';
    tombstone text := format('''erased:'' || encode(sha256(convert_to(%s, ''UTF8'')), ''hex'')', erased);
BEGIN
    FOR name, actor IN VALUES
        ('audit', 'actor'), ('rewards', 'actor'), ('procedure_reviews', 'actor'), ('cases', 'source')
    LOOP
        EXECUTE format(
            'CREATE POLICY erased_name ON %1$I TO casebank_eraser'
            ' USING (%2$I IN (%3$s, %4$s)) WITH CHECK (%2$I = %4$s)',
            name, actor, erased, tombstone
        );
    END LOOP;
END $$;
GRANT SELECT (user_sub, id, actor), UPDATE (actor) ON audit, rewards TO casebank_eraser;
GRANT SELECT (user_sub, id, source), UPDATE (source) ON cases TO casebank_eraser;
GRANT SELECT (user_sub, procedure_id, version, actor), UPDATE (actor) ON procedure_reviews TO casebank_eraser;

-- Keys. Of master keys there are only fingerprints here. A transaction of a user looks up which one to wrap by. The
-- worker, which replaces one by another, sees how every user's key is wrapped and changes that of the user who entered.
CREATE POLICY worker ON master_keys TO casebank_worker USING (true) WITH CHECK (true);
CREATE POLICY reader ON master_keys FOR SELECT TO casebank_service USING (true);
GRANT SELECT, INSERT, UPDATE ON master_keys TO casebank_worker;
GRANT SELECT ON master_keys TO casebank_service;
CREATE POLICY rotation_looks ON user_keys FOR SELECT TO casebank_worker USING (true);
CREATE POLICY rotation_wraps ON user_keys FOR UPDATE TO casebank_worker
USING (user_sub = nullif(current_setting('app.user_sub', true), ''))
WITH CHECK (user_sub = nullif(current_setting('app.user_sub', true), ''));
GRANT SELECT, UPDATE (wrapped_key, master_key) ON user_keys TO casebank_worker;

-- The worker alone reads and writes the state of the service, which holds no row of a user.
CREATE POLICY worker ON installation_keys TO casebank_worker USING (true) WITH CHECK (true);
CREATE POLICY worker ON jobs TO casebank_worker USING (true) WITH CHECK (true);
CREATE POLICY worker ON token_revocations TO casebank_worker USING (true) WITH CHECK (true);
CREATE POLICY worker ON readmissions TO casebank_worker USING (true) WITH CHECK (true);
GRANT SELECT, INSERT, UPDATE ON installation_keys, jobs TO casebank_worker;
GRANT SELECT, INSERT, DELETE ON token_revocations, readmissions TO casebank_worker;
