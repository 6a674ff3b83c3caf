CREATE TABLE user_keys (
    user_sub text NOT NULL,
    key_id uuid NOT NULL,
    wrapped_key bytea NOT NULL,  -- AES key of the user, wrapped by the master key
    created_at timestamptz NOT NULL DEFAULT now(),
    master_key text,  -- fingerprint of the master key that wrapped it; null: from before they were noted
    PRIMARY KEY (user_sub, key_id),
    UNIQUE (user_sub)
);

CREATE TABLE profiles (
    user_sub text NOT NULL,
    agent_key text NOT NULL,
    enabled boolean NOT NULL DEFAULT true,  -- whether memory is read
    writing boolean NOT NULL DEFAULT true,  -- whether memory is written
    window_size integer NOT NULL DEFAULT 200 CHECK (window_size > 0),
    ttl_days integer,
    k smallint NOT NULL DEFAULT 4 CHECK (k BETWEEN 1 AND 50),
    full_text_weight real NOT NULL DEFAULT 1,
    semantic_weight real NOT NULL DEFAULT 1,
    rrf_k real NOT NULL DEFAULT 50,
    embedding_model text,  -- the one vector space that searches of this profile use
    created_at timestamptz NOT NULL DEFAULT now(),
    approximate boolean NOT NULL DEFAULT false,  -- every vector of the profile is in the HNSW index
    learning boolean NOT NULL DEFAULT true,  -- whether a policy is trained
    explore real NOT NULL DEFAULT 0 CHECK (explore >= 0 AND explore <= 1),  -- share of slates with a drawn place
    canary real NOT NULL DEFAULT 0 CHECK (canary >= 0 AND canary <= 0.9),  -- share of a policy on trial
    rewrite text NOT NULL DEFAULT 'off' CHECK (rewrite IN ('off', 'llm')),  -- who turns a query into a search
    analyst text NOT NULL DEFAULT 'rules' CHECK (analyst IN ('rules', 'llm')),  -- who explains failures
    abstraction text NOT NULL DEFAULT 'hybrid' CHECK (abstraction IN ('off', 'concrete', 'abstract', 'hybrid')),
        -- off, or the level
    least_success real NOT NULL DEFAULT 0.7 CHECK (least_success >= 0 AND least_success <= 1),
        -- of a run that makes a procedure
    procedures smallint NOT NULL DEFAULT 2 CHECK (procedures BETWEEN 0 AND 10),  -- most in one answer
    procedure_similarity real,  -- least of trigger and query; null: the embedding model's own
    llm_tokens_per_day integer,  -- null: as many as the service allows
    tool_kinds jsonb NOT NULL DEFAULT '{}',  -- of tools whose names do not tell
    session_ttl_days integer,  -- since its last turn; null: a session stays
    session_share real NOT NULL DEFAULT 0.4 CHECK (session_share >= 0 AND session_share <= 1),
        -- of a context's tokens, at most
    procedures_share real NOT NULL DEFAULT 0.33333334 CHECK (procedures_share >= 0 AND procedures_share <= 1),
        -- likewise
    facts_share real NOT NULL DEFAULT 0.2 CHECK (facts_share >= 0 AND facts_share <= 1),  -- likewise
    session_summary text NOT NULL DEFAULT 'rules' CHECK (session_summary IN ('rules', 'llm')),
        -- who tells of older turns
    PRIMARY KEY (user_sub, agent_key)
);

CREATE UNLOGGED TABLE rate_limits (
    -- how much of their limits users have used; empty after a crash, when everybody begins anew
    user_sub text NOT NULL,
    bucket bytea NOT NULL,  -- digest of what is limited: user, agent or session
    granted integer NOT NULL,  -- tokens that the last take got
    full_at timestamptz NOT NULL,  -- when the bucket will be full
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (user_sub, bucket)
);

CREATE TABLE llm_usage (
    user_sub text NOT NULL,
    agent_key text NOT NULL,
    day date NOT NULL,  -- UTC
    purpose text NOT NULL CHECK (purpose IN ('rewrite', 'analyse', 'abstract', 'revise', 'summarise')),
    calls integer NOT NULL,
    failures integer NOT NULL,  -- calls without a usable answer
    prompt_tokens bigint NOT NULL,
    completion_tokens bigint NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (user_sub, agent_key, day, purpose)
);
