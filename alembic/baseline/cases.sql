CREATE TABLE cases (
    user_sub text NOT NULL,
    id uuid NOT NULL,
    agent_key text NOT NULL,
    kind text NOT NULL CHECK (kind IN ('task', 'subtask', 'tool')),
    parent_case_id uuid,  -- of a subtask or tool case: the run it belongs to
    status text NOT NULL CHECK (status IN ('pending', 'ready', 'merged', 'pruned', 'dead')),
    task text NOT NULL,
    plan text[] NOT NULL,  -- of sealed words: a token for each step
    tools text[] NOT NULL,  -- distinct tool names in order of first use
    tags text[] NOT NULL,
    outcome text NOT NULL CHECK (outcome IN ('success', 'failure', 'partial', 'aborted', 'unknown')),
    reward real CHECK (reward >= 0 AND reward <= 1),
    reward_source text,
    step_count integer NOT NULL,
    error_count integer NOT NULL,
    retrieval_id uuid,
    used_case_ids uuid[],  -- null: the backend did not say
    search_text text NOT NULL DEFAULT '',  -- to be indexed; a trigger empties it
    search_vector tsvector,  -- of search_text, by a trigger
    message_hash bytea NOT NULL,  -- sha256 of the normalised task and plan
    idempotency_key text,
    request_hash bytea NOT NULL,  -- sha256 of the request as it was sent
    key_id uuid NOT NULL,
    payload bytea NOT NULL,  -- sealed: prompt snapshot, tool traces, turns, procedure
    occurrences integer NOT NULL DEFAULT 1,
    merged_into uuid,
    reuse_count real NOT NULL DEFAULT 0,
    reuse_reward real NOT NULL DEFAULT 0,  -- sum over reuse_count
    last_used_at timestamptz,
    attempts smallint NOT NULL DEFAULT 0,
    available_at timestamptz NOT NULL DEFAULT now(),
    lease_token uuid,
    last_error text,
    pruned_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    effects text[] NOT NULL DEFAULT '{}',
        -- tools that changed something, once for each time they succeeded; without traces the plan's steps
    source text NOT NULL DEFAULT '',  -- who wrote it: the actor of the retain
    used_procedure_ids uuid[],  -- null: the backend did not say
    trusted_runs integer NOT NULL DEFAULT 0,
        -- runs whose trusted rewards the reward is the mean of; 0: its own at most
    proven boolean NOT NULL DEFAULT false,  -- others than the run itself said, later, that it went as it claims
    words bytea,  -- sealed: task, plan; null: they stand in their columns
    session_id uuid,  -- the session that it was a part of; null: none, or one that is gone
    terms integer[] NOT NULL DEFAULT '{}',  -- keyed hashes of the task's distinct words
    moves integer[] NOT NULL DEFAULT '{}',  -- keyed hashes of the plan's moves, with repeats
    PRIMARY KEY (user_sub, id),
    UNIQUE (user_sub, idempotency_key),
    FOREIGN KEY (user_sub, agent_key) REFERENCES profiles,
    FOREIGN KEY (user_sub, key_id) REFERENCES user_keys,
    FOREIGN KEY (user_sub, retrieval_id) REFERENCES decisions,
    FOREIGN KEY (user_sub, session_id) REFERENCES sessions
);
CREATE INDEX cases_bank_idx ON cases (user_sub, agent_key, status, created_at, id);
CREATE INDEX cases_queue_idx ON cases (user_sub, available_at) WHERE status = 'pending';
CREATE INDEX cases_retrieval_idx ON cases (user_sub, retrieval_id) WHERE retrieval_id IS NOT NULL;
CREATE INDEX cases_search_vector_idx ON cases USING gin (search_vector);
CREATE INDEX cases_session_idx ON cases (user_sub, session_id) WHERE session_id IS NOT NULL;

-- The text that is searched is never stored: its words are sealed in the same row, and the index is enough.
CREATE FUNCTION casebank_index_words() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    NEW.search_vector := to_tsvector('english'::regconfig, NEW.search_text);
    NEW.search_text := '';
    RETURN NEW;
END $$;

CREATE TRIGGER index_words BEFORE INSERT OR UPDATE OF search_text ON cases
FOR EACH ROW WHEN (NEW.search_text <> '') EXECUTE FUNCTION casebank_index_words();

CREATE TABLE case_embeddings (
    user_sub text NOT NULL,
    agent_key text NOT NULL,
    model text NOT NULL,
    case_id uuid NOT NULL,
    dimension integer NOT NULL,
    embedding {vector} NOT NULL,  -- real[] where pgvector is missing
    approximate boolean NOT NULL DEFAULT false,  -- in the HNSW index
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (user_sub, agent_key, model, case_id),
    FOREIGN KEY (user_sub, case_id) REFERENCES cases ON DELETE CASCADE
);
CREATE INDEX case_embeddings_user_sub_case_id_idx ON case_embeddings (user_sub, case_id);

CREATE TABLE case_tools (
    user_sub text NOT NULL,
    case_id uuid NOT NULL,
    tool text NOT NULL,
    agent_key text NOT NULL,
    calls integer NOT NULL,
    errors integer NOT NULL,
    duration_ms real,  -- of all calls together; null: not told
    forms text[] NOT NULL,  -- the arguments of calls that worked, values as placeholders
    failures jsonb NOT NULL,  -- [{cause, fix}], fix null: never put right
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (user_sub, case_id, tool),
    FOREIGN KEY (user_sub, case_id) REFERENCES cases ON DELETE CASCADE
);
CREATE INDEX case_tools_user_sub_agent_key_tool_idx ON case_tools (user_sub, agent_key, tool);

CREATE TABLE failures (  -- failed calls of runs, and what put them right
    user_sub text NOT NULL,
    case_id uuid NOT NULL,
    place smallint NOT NULL,  -- 1-based, among the failures of the run
    agent_key text NOT NULL,
    tool integer NOT NULL,  -- keyed hash of the name
    sign integer NOT NULL,  -- keyed hash of the tool and the error's first line
    error integer[] NOT NULL,  -- keyed hashes of the error's words and codes
    call integer[] NOT NULL,  -- keyed hashes of the call's moves
    fix integer[] NOT NULL,  -- keyed hashes of the fix's parts; empty: nothing worked
    fix_id integer,  -- keyed hash of the fix as a whole; null: nothing worked
    calls smallint NOT NULL,  -- number of calls that failed like this
    words bytea NOT NULL,  -- sealed: the error and the fix
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (user_sub, case_id, place),
    FOREIGN KEY (user_sub, case_id) REFERENCES cases ON DELETE CASCADE
);
CREATE INDEX failures_user_sub_agent_key_created_at_idx ON failures (user_sub, agent_key, created_at);

CREATE TABLE advice (  -- decisions that were taken at a failed call
    user_sub text NOT NULL,
    decision_id uuid NOT NULL,
    agent_key text NOT NULL,
    sign integer NOT NULL,  -- of the failure, see failures
    run_id uuid,  -- of the run that asked; null: it did not say
    retrieval_id uuid,  -- that the run began with; null: it did not say
    fix_ids integer[] NOT NULL DEFAULT '{}',  -- told; empty: silence
    came_back boolean,  -- whether the run failed like this again; null: the run has not ended
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (user_sub, decision_id),
    FOREIGN KEY (user_sub, decision_id) REFERENCES decisions ON DELETE CASCADE
);
CREATE INDEX advice_user_sub_agent_key_sign_idx ON advice (user_sub, agent_key, sign);
CREATE INDEX advice_run_idx ON advice (user_sub, run_id) WHERE run_id IS NOT NULL;
CREATE INDEX advice_retrieval_idx ON advice (user_sub, retrieval_id) WHERE retrieval_id IS NOT NULL;

CREATE TABLE procedures (
    user_sub text NOT NULL,
    id uuid NOT NULL,
    version integer NOT NULL,
    agent_key text NOT NULL,
    case_id uuid,  -- the run whose words it is made of; null once that was pruned
    record jsonb NOT NULL,  -- procedure_name, semantic_description, …: the learned-procedure record
    created_at timestamptz NOT NULL DEFAULT now(),
    kind text NOT NULL DEFAULT 'script' CHECK (kind IN ('script', 'failure_lesson', 'revision')),
    origin text NOT NULL DEFAULT 'rules' CHECK (origin IN ('run', 'rules', 'llm')),
    level text CHECK (level IN ('concrete', 'abstract', 'hybrid')),
        -- how abstract it is; null of a lesson from a failure
    status text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'superseded', 'retired', 'rolled_back')),
    pinned boolean NOT NULL DEFAULT false,  -- by hand: nothing replaces it
    parent_version integer,  -- the version that this one revises
    task_type text NOT NULL DEFAULT '',
    trigger text NOT NULL DEFAULT '',  -- one sentence: when to use it
    domain text NOT NULL DEFAULT '',
    source_case_ids uuid[] NOT NULL DEFAULT '{}',  -- runs merged into it
    occurrences integer NOT NULL DEFAULT 1,
    uses real NOT NULL DEFAULT 0,
    use_reward real NOT NULL DEFAULT 0,  -- sum over uses
    last_used_at timestamptz,
    search_text text NOT NULL DEFAULT '',
    search_vector tsvector GENERATED ALWAYS AS (to_tsvector('english'::regconfig, search_text)) STORED,
    embedding_model text,
    embedding real[],  -- of the trigger, in the space of embedding_model
    query_kind text CHECK (query_kind IN ('find', 'create', 'change', 'remove', 'repair', 'run', 'question', 'other')),
        -- what kind of thing its run was asked for; null: older than this column
    success_score real,  -- of its run, 0 to 1; null: older than this column
    duration_ms real,  -- of all calls of its run together; null: not told
    PRIMARY KEY (user_sub, id, version),
    FOREIGN KEY (user_sub, case_id) REFERENCES cases ON DELETE CASCADE,
    CONSTRAINT procedures_parent_fkey FOREIGN KEY (user_sub, id, parent_version) REFERENCES procedures ON DELETE CASCADE
);
CREATE UNIQUE INDEX procedures_active_idx ON procedures (user_sub, agent_key, id) WHERE status = 'active';
CREATE INDEX procedures_user_sub_case_id_idx ON procedures (user_sub, case_id);

CREATE TABLE procedure_reviews (  -- what a person found a version of a procedure to be; the newest review of each
    user_sub text NOT NULL,
    procedure_id uuid NOT NULL,
    version integer NOT NULL,
    verdict text NOT NULL CHECK (verdict IN ('good', 'incomplete', 'wrong')),
    root_cause_right boolean,  -- null: not said
    steps_complete boolean,  -- null: not said
    note text NOT NULL DEFAULT '',  -- the reviewer's words, redacted
    actor text NOT NULL,  -- who reviewed it
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (user_sub, procedure_id, version),
    FOREIGN KEY (user_sub, procedure_id, version) REFERENCES procedures ON DELETE CASCADE
);

CREATE TABLE reflections (
    -- runs that turned out to have failed after the worker had finished them, and the queue of those to come
    user_sub text NOT NULL,
    id uuid NOT NULL,  -- of the case of the run
    agent_key text NOT NULL,
    status text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'ready', 'dead')),
    attempts smallint NOT NULL DEFAULT 0,
    available_at timestamptz NOT NULL DEFAULT now(),
    lease_token uuid,
    last_error text,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (user_sub, id),
    FOREIGN KEY (user_sub, id) REFERENCES cases ON DELETE CASCADE
);
CREATE INDEX reflections_queue_idx ON reflections (user_sub, available_at) WHERE status = 'pending';

CREATE TABLE rewards (
    user_sub text NOT NULL,
    id uuid NOT NULL,
    case_id uuid,
    decision_id uuid,
    reward real NOT NULL CHECK (reward >= 0 AND reward <= 1),
    source text NOT NULL CHECK (source IN ('heuristic', 'user', 'judge', 'metric')),
    actor text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    of_run boolean NOT NULL DEFAULT false,  -- of a retrieval's: it was given for one of its runs, which was named
    PRIMARY KEY (user_sub, id),
    FOREIGN KEY (user_sub, case_id) REFERENCES cases ON DELETE CASCADE,
    FOREIGN KEY (user_sub, decision_id) REFERENCES decisions ON DELETE CASCADE,
    CONSTRAINT rewards_one_subject_check CHECK (num_nonnulls(case_id, decision_id) = 1)
);
CREATE INDEX rewards_user_sub_case_id_idx ON rewards (user_sub, case_id);
CREATE INDEX rewards_user_sub_decision_id_idx ON rewards (user_sub, decision_id);
