CREATE TABLE sessions (  -- conversations of a user with an agent
    user_sub text NOT NULL,
    id uuid NOT NULL,
    name text NOT NULL,  -- as the backend named it
    agent_key text NOT NULL,
    key_id uuid NOT NULL,
    turn_count integer NOT NULL DEFAULT 0,
    turn_bytes integer NOT NULL DEFAULT 0,  -- of all its turns as JSON
    taken_turns integer NOT NULL DEFAULT 0,  -- those that runs have taken so far
    last_turn_at timestamptz NOT NULL DEFAULT now(),  -- as it was told
    created_at timestamptz NOT NULL DEFAULT now(),
    status text NOT NULL DEFAULT 'ready' CHECK (status IN ('pending', 'ready', 'dead')),
        -- pending: it has turns to be read
    read_turns integer NOT NULL DEFAULT 0,  -- those that facts were read off
    attempts smallint NOT NULL DEFAULT 0,
    available_at timestamptz NOT NULL DEFAULT now(),
    lease_token uuid,
    last_error text,
    PRIMARY KEY (user_sub, id),
    UNIQUE (user_sub, name),
    FOREIGN KEY (user_sub, agent_key) REFERENCES profiles,
    FOREIGN KEY (user_sub, key_id) REFERENCES user_keys
);
CREATE INDEX sessions_agent_idx ON sessions (user_sub, agent_key, last_turn_at);
CREATE INDEX sessions_queue_idx ON sessions (user_sub, available_at) WHERE status = 'pending';

CREATE TABLE turns (  -- the messages of sessions
    user_sub text NOT NULL,
    session_id uuid NOT NULL,
    number integer NOT NULL CHECK (number > 0),  -- 1-based, in the order in which they were told
    said_at timestamptz NOT NULL,  -- never earlier than the turn before it
    utc_offset_min smallint NOT NULL DEFAULT 0,  -- minutes east of UTC, as told
    payload bytea NOT NULL,  -- sealed: role, content, tool calls
    call_key text,  -- idempotency key of the call that it was the first turn of
    call_hash bytea,  -- keyed hash of that call
    call_size integer,  -- turns of that call
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (user_sub, session_id, number),
    UNIQUE (user_sub, session_id, call_key),
    FOREIGN KEY (user_sub, session_id) REFERENCES sessions ON DELETE CASCADE,
    CONSTRAINT turns_call_check CHECK (num_nonnulls(call_key, call_hash, call_size) IN (0, 3))
);

CREATE TABLE session_summaries (
    -- what language models told of sessions as they grew; a newer one leaves the older ones as they are
    user_sub text NOT NULL,
    session_id uuid NOT NULL,
    last_turn integer NOT NULL CHECK (last_turn > 0),  -- it tells of the turns up to that number
    payload bytea NOT NULL,  -- sealed: what a language model tells of them, line by line
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (user_sub, session_id, last_turn),
    FOREIGN KEY (user_sub, session_id) REFERENCES sessions ON DELETE CASCADE
);
