CREATE TABLE audit (
    user_sub text NOT NULL,
    id uuid NOT NULL,
    agent_key text,
    actor text NOT NULL,
    action text NOT NULL,
    subject_id uuid,
    payload jsonb NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    mac bytea,  -- HMAC under the audit key; null: from before there was one
    PRIMARY KEY (user_sub, id)
);

CREATE TABLE audit_links (
    -- the chain of a user's audit entries, in the order of their commits; written by a trigger alone
    user_sub text NOT NULL,
    seq bigint NOT NULL,  -- 1-based, without gaps
    entry_id uuid NOT NULL,  -- no foreign key: a link outlives an entry that somebody deletes
    hash bytea NOT NULL,  -- sha256 of the link before, the number and the entry
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (user_sub, seq),
    UNIQUE (user_sub, entry_id)
);

CREATE TABLE audit_heads (  -- where each user's chain ends
    user_sub text NOT NULL,
    seq bigint NOT NULL,  -- of the last link
    hash bytea NOT NULL,  -- of the last link
    pruned_seq bigint NOT NULL DEFAULT 0,  -- up to here entries are gone
    pruned_hash bytea,  -- of the last link that is gone
    sealed_seq bigint NOT NULL DEFAULT 0,  -- up to here the seal goes
    seal bytea,  -- HMAC of sealed_seq, its hash and what was pruned
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (user_sub)
);

-- A user who was erased leaves one row here, which holds a digest in place of the name.
CREATE TABLE erasures (
    user_sub text NOT NULL,  -- sha256 of the erased user's name, in hex
    erased_at timestamptz NOT NULL,
    receipt jsonb NOT NULL,  -- what was erased, place by place, signed; it holds no name
    PRIMARY KEY (user_sub, erased_at)
);

CREATE TABLE erasure_links (  -- the chain of all tombstones; written by a trigger alone
    seq bigint NOT NULL,  -- 1-based, without gaps
    user_sha256 text NOT NULL,
    erased_at timestamptz NOT NULL,
    hash bytea NOT NULL,  -- sha256 of the link before, the number and the tombstone
    PRIMARY KEY (seq)
);

CREATE TABLE erasure_heads (  -- where the chain of the tombstones ends: one row
    chain text NOT NULL,  -- erasures
    seq bigint NOT NULL,  -- of the last link
    hash bytea NOT NULL,  -- of the last link
    sealed_seq bigint NOT NULL DEFAULT 0,  -- up to here the seal goes
    seal bytea,  -- HMAC of sealed_seq and its hash
    PRIMARY KEY (chain)
);

INSERT INTO erasure_heads (chain, seq, hash) VALUES ('erasures', 0, sha256(convert_to('erasures', 'UTF8')));

-- The text of an entry, from which anybody can compute its link again: writer/audit/links.py does. It is the same
-- before and after the name of an erased actor was replaced by a digest.
CREATE FUNCTION casebank_audit_content(entry audit) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT jsonb_build_array(
        entry.user_sub, entry.id::text, entry.agent_key,
        CASE WHEN entry.actor ~ '^erased:[0-9a-f]{64}$' THEN substr(entry.actor, 8)
            ELSE encode(sha256(convert_to(entry.actor, 'UTF8')), 'hex') END,
        entry.action, entry.subject_id::text, entry.payload::text,
        (extract(epoch FROM entry.created_at) * 1000000)::bigint, encode(entry.mac, 'hex')
    )::text
$$;

CREATE FUNCTION casebank_link_hash(p_before bytea, p_seq bigint, p_content text) RETURNS bytea
LANGUAGE sql IMMUTABLE AS $$ SELECT sha256(p_before || int8send(p_seq) || convert_to(p_content, 'UTF8')) $$;

-- The head's row is the lock: two transactions of one user add their links one after the other. They take it when they
-- commit and wait for no other lock after it, so there is no deadlock.
CREATE FUNCTION casebank_link(entry audit) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    content text := casebank_audit_content(entry);
    n bigint;
    h bytea;
BEGIN
    LOOP
        UPDATE audit_heads SET seq = seq + 1, hash = casebank_link_hash(hash, seq + 1, content)
        WHERE user_sub = entry.user_sub RETURNING seq, hash INTO n, h;
        EXIT WHEN FOUND;
        INSERT INTO audit_heads (user_sub, seq, hash)
        VALUES (entry.user_sub, 0, sha256(convert_to(entry.user_sub, 'UTF8'))) ON CONFLICT DO NOTHING;
    END LOOP;
    INSERT INTO audit_links (user_sub, seq, entry_id, hash) VALUES (entry.user_sub, n, entry.id, h);
END $$;

REVOKE EXECUTE ON FUNCTION casebank_link(audit) FROM PUBLIC;

-- The service may only read the chains: the functions that extend them run as the owner, and look for tables and
-- functions in no schema but public.
CREATE FUNCTION casebank_link_new() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    PERFORM casebank_link(ROW(NEW.*)::audit);  -- on a shard, NEW has the type of the shard
    RETURN NULL;
END $$;

CREATE CONSTRAINT TRIGGER link AFTER INSERT ON audit DEFERRABLE INITIALLY DEFERRED
FOR EACH ROW EXECUTE FUNCTION casebank_link_new();

CREATE FUNCTION casebank_link_erasure() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    content text := jsonb_build_array(NEW.user_sub, (extract(epoch FROM NEW.erased_at) * 1000000)::bigint)::text;
    n bigint;
    h bytea;
BEGIN
    IF to_regclass('erasure_heads') IS NULL THEN  -- a copy on another node of a Citus cluster: the chain is kept in one place
        RETURN NULL;
    END IF;
    UPDATE erasure_heads SET seq = seq + 1, hash = casebank_link_hash(hash, seq + 1, content)
    RETURNING seq, hash INTO n, h;
    INSERT INTO erasure_links (seq, user_sha256, erased_at, hash) VALUES (n, NEW.user_sub, NEW.erased_at, h);
    RETURN NULL;
END $$;

CREATE CONSTRAINT TRIGGER link AFTER INSERT ON erasures DEFERRABLE INITIALLY DEFERRED
FOR EACH ROW EXECUTE FUNCTION casebank_link_erasure();

-- The service deletes entries together with their user, or those that the pruning of the audit has passed. Each query of
-- the tables names one user, and none joins the transition table: on a shard of a Citus cluster, others are refused.
CREATE FUNCTION casebank_keep_entries() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    whose text;
    ids uuid[];
BEGIN
    FOR whose, ids IN
        SELECT user_sub, array_agg(id) FROM gone WHERE current_user = 'casebank_service' GROUP BY user_sub
    LOOP
        IF EXISTS (
            SELECT FROM unnest(ids) AS gone_id
            JOIN audit_heads AS h ON h.user_sub = whose
            LEFT JOIN audit_links AS l ON l.user_sub = whose AND l.entry_id = gone_id
            WHERE l.seq IS NULL OR l.seq > h.pruned_seq
        ) THEN
            RAISE EXCEPTION 'the audit is append-only' USING ERRCODE = 'insufficient_privilege';
        END IF;
    END LOOP;
    RETURN NULL;
END $$;

CREATE TRIGGER keep AFTER DELETE ON audit REFERENCING OLD TABLE AS gone
FOR EACH STATEMENT EXECUTE FUNCTION casebank_keep_entries();

CREATE FUNCTION casebank_keep_links() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    whose text;
    newest bigint;
BEGIN
    FOR whose, newest IN
        SELECT user_sub, max(seq) FROM gone WHERE current_user = 'casebank_service' GROUP BY user_sub
    LOOP
        IF EXISTS (SELECT FROM audit_heads WHERE user_sub = whose AND pruned_seq < newest) THEN
            RAISE EXCEPTION 'the audit is append-only' USING ERRCODE = 'insufficient_privilege';
        END IF;
    END LOOP;
    RETURN NULL;
END $$;

CREATE TRIGGER keep AFTER DELETE ON audit_links REFERENCING OLD TABLE AS gone
FOR EACH STATEMENT EXECUTE FUNCTION casebank_keep_links();

-- An erasure deletes the head before entries and links. The head goes only in a transaction that records the erasure.
CREATE FUNCTION casebank_keep_head() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF current_user = 'casebank_service' AND NOT EXISTS (
        SELECT FROM erasures
        WHERE user_sub = encode(sha256(convert_to(OLD.user_sub, 'UTF8')), 'hex') AND erased_at >= now()
    ) THEN
        RAISE EXCEPTION 'the audit goes with its user or not at all' USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NULL;
END $$;

CREATE CONSTRAINT TRIGGER keep AFTER DELETE ON audit_heads DEFERRABLE INITIALLY DEFERRED
FOR EACH ROW EXECUTE FUNCTION casebank_keep_head();
