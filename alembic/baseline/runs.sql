CREATE TABLE runs (  -- runs whose steps are told while they are under way
    user_sub text NOT NULL,
    id uuid NOT NULL,  -- as the backend named it
    agent_key text NOT NULL,
    status text NOT NULL DEFAULT 'under_way' CHECK (status IN ('under_way', 'retained', 'aborted')),
    key_id uuid NOT NULL,
    words bytea NOT NULL,  -- sealed: task
    retrieval_id uuid,  -- that it began with; looked up when it ends, and so no foreign key
    step_count integer NOT NULL DEFAULT 0,
    step_bytes integer NOT NULL DEFAULT 0,  -- of all its steps as JSON
    last_step_at timestamptz NOT NULL DEFAULT now(),
    ended_at timestamptz,
    case_id uuid,  -- the case that it became; null: none yet, or one that is gone
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (user_sub, id),
    FOREIGN KEY (user_sub, agent_key) REFERENCES profiles,
    FOREIGN KEY (user_sub, key_id) REFERENCES user_keys,
    FOREIGN KEY (user_sub, case_id) REFERENCES cases,
    CONSTRAINT runs_ended_at_check CHECK ((status = 'under_way') = (ended_at IS NULL))
);
CREATE INDEX runs_status_idx ON runs (user_sub, agent_key, status, last_step_at);
CREATE INDEX runs_user_sub_case_id_idx ON runs (user_sub, case_id);

CREATE TABLE run_steps (  -- the steps of runs under way; those of a run that was retained are in its case
    user_sub text NOT NULL,
    run_id uuid NOT NULL,
    number integer NOT NULL CHECK (number > 0),  -- 1-based, as the backend counts
    payload bytea NOT NULL,  -- sealed: the tool trace
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (user_sub, run_id, number),
    FOREIGN KEY (user_sub, run_id) REFERENCES runs ON DELETE CASCADE
);

CREATE TABLE findings (  -- what the steps of runs found out
    user_sub text NOT NULL,
    run_id uuid NOT NULL,
    step integer NOT NULL,  -- of the run, whose call found it
    part smallint NOT NULL,  -- 0-based place among the findings of the step
    agent_key text NOT NULL,
    kind text NOT NULL CHECK (kind IN ('read', 'search', 'answer', 'write', 'other')),
    success boolean NOT NULL,
    query_hash bigint NOT NULL,  -- keyed: of what was asked, however it was put
    terms bigint[] NOT NULL DEFAULT '{}',  -- keyed: of the words of what was asked, where it was asked in words
    path_hash bigint,  -- keyed: of the file that was read
    content_hash bigint,  -- keyed: of the hash of what the file said
    first_line integer,  -- of a part of a file; null: all of it was asked for
    last_line integer,  -- of what was read of the file
    place_keys bigint[] NOT NULL DEFAULT '{}',
        -- keyed: what other places are looked for by; none: it is about any file
    place_marks bigint[] NOT NULL DEFAULT '{}',  -- keyed: by which this place is found
    payload bytea NOT NULL,  -- sealed: tool, query, fact and what was read off
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (user_sub, run_id, step, part),
    FOREIGN KEY (user_sub, run_id) REFERENCES runs ON DELETE CASCADE,
    CONSTRAINT findings_place_check CHECK (step > 0 AND part >= 0)
);
CREATE INDEX findings_path_idx ON findings (user_sub, agent_key, path_hash) WHERE path_hash IS NOT NULL;
CREATE INDEX findings_query_idx ON findings (user_sub, agent_key, query_hash);
