CREATE TABLE decisions (
    user_sub text NOT NULL,
    id uuid NOT NULL,
    agent_key text NOT NULL,
    query text NOT NULL,
    mode text NOT NULL,
    degraded text[] NOT NULL,
    policy_version text NOT NULL,
    feature_version smallint NOT NULL,
    seed bigint NOT NULL,
    candidate_ids uuid[] NOT NULL,
    features bytea NOT NULL,  -- float16, candidates x features of feature_version
    scores real[] NOT NULL,  -- what the arm ordered the candidates by
    tokens integer NOT NULL,
    reward real CHECK (reward >= 0 AND reward <= 1),
    reward_source text,
    created_at timestamptz NOT NULL DEFAULT now(),
    arm text NOT NULL CHECK (arm IN ('default', 'serving', 'candidate')),
    k smallint NOT NULL,
    min_similarity real,
    slate_propensity real NOT NULL CHECK (slate_propensity > 0 AND slate_propensity <= 1),
        -- of the whole slate, over every arm and draw
    candidate_groups smallint[] NOT NULL,  -- candidates of one group say the same
    candidate_sources smallint[] NOT NULL,  -- one number for each source
    rewritten text,  -- what was searched for in place of the query; null: the query itself
    procedure_ids uuid[] NOT NULL DEFAULT '{}',  -- told with the slate
    procedure_versions integer[] NOT NULL DEFAULT '{}',  -- of those
    used_procedure_ids uuid[],  -- of those, what the backend said it used; null: it did not say
    words bytea,  -- sealed: query, rewritten; null: they stand in their columns
    query_group bigint,  -- of sealed words: the same for equal queries of the user
    told bytea,  -- sealed: what memory_context said; null: it was not kept, or is forgotten
    PRIMARY KEY (user_sub, id)
);
CREATE INDEX decisions_rewarded_idx ON decisions (user_sub, agent_key, id) WHERE reward IS NOT NULL;

CREATE TABLE decision_slots (
    user_sub text NOT NULL,
    decision_id uuid NOT NULL,
    place smallint NOT NULL,  -- 1-based
    case_id uuid NOT NULL,  -- no foreign key: the log outlives a pruned case
    propensity real NOT NULL CHECK (propensity > 0 AND propensity <= 1),
    used boolean,  -- whether the backend said that it used the case; null: it did not say
    agreed real,  -- 0 to 1: how well the plan of the run that was shown it agrees with the case's; null: not known
    PRIMARY KEY (user_sub, decision_id, place),
    FOREIGN KEY (user_sub, decision_id) REFERENCES decisions ON DELETE CASCADE
);
CREATE INDEX decision_slots_user_sub_case_id_idx ON decision_slots (user_sub, case_id);

CREATE TABLE policies (
    user_sub text NOT NULL,
    agent_key text NOT NULL,
    version integer NOT NULL,
    status text NOT NULL CHECK (status IN ('candidate', 'serving', 'retired', 'rolled_back', 'rejected', 'failed')),
    feature_version smallint NOT NULL,
    weights bytea NOT NULL,  -- safetensors
    checksum bytea NOT NULL,  -- sha256 of the weights
    blend real NOT NULL CHECK (blend >= 0 AND blend <= 1),  -- weight of the learned part, n / (n + n0)
    decisions integer NOT NULL,  -- rewarded decisions it was trained on
    metrics jsonb NOT NULL,  -- losses, calibration, the learning curve
    verdict jsonb,  -- of the gate, with every number and reason
    promoted_at timestamptz,
    retired_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (user_sub, agent_key, version)
);
CREATE UNIQUE INDEX policies_live_idx ON policies (user_sub, agent_key, status)
WHERE status IN ('candidate', 'serving');

CREATE TABLE replays (  -- what a profile's own runs say about the order that ranks them
    user_sub text NOT NULL,
    agent_key text NOT NULL,
    runs integer NOT NULL,  -- newest cases that were replayed
    questions integer NOT NULL,  -- runs that went well and that an earlier one answers
    serves text NOT NULL,  -- the order that ranks from now on
    tallies jsonb NOT NULL,  -- by order: first place right, nDCG@4, faded charges
    fit bytea NOT NULL,  -- safetensors: weights of terms, channels and moves
    unlike double precision,  -- mean similarity of the vectors of unlike cases; null: too few are unlike
    newest timestamptz NOT NULL,  -- creation of the newest case that was replayed
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (user_sub, agent_key),
    FOREIGN KEY (user_sub, agent_key) REFERENCES profiles
);

-- An operator counts the policies of all users by status and verdict and sees no more of them: the worker's role calls
-- this function, which runs as the owner.
CREATE FUNCTION casebank_count_policies()
RETURNS TABLE (status text, verdict text, policies bigint, decisions double precision)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
    SELECT p.status::text, p.verdict ->> 'outcome', count(*), avg(p.decisions)::double precision
    FROM policies AS p
    GROUP BY 1, 2
    ORDER BY 1, 2
$$;

REVOKE ALL ON FUNCTION casebank_count_policies() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION casebank_count_policies() TO casebank_worker;
