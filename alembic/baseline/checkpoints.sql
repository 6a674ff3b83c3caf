CREATE TABLE checkpoints (  -- states of a backend's graphs, and the writes pending on them
    user_sub text NOT NULL,
    id uuid NOT NULL,
    agent_key text NOT NULL,
    key_id uuid NOT NULL,
    thread bytea NOT NULL,  -- keyed hash of the thread's id
    namespace bytea NOT NULL,  -- keyed hash of the namespace
    checkpoint_id uuid NOT NULL,  -- as the backend named it; rises with time
    task bytea NOT NULL,  -- keyed hash of a pending write's task; empty: the state
    place integer NOT NULL,  -- of a write among those of its task
    words bytea NOT NULL,  -- sealed: thread, namespace, task, value
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (user_sub, id),
    FOREIGN KEY (user_sub, agent_key) REFERENCES profiles,
    FOREIGN KEY (user_sub, key_id) REFERENCES user_keys
);
CREATE UNIQUE INDEX checkpoints_part_idx
ON checkpoints (user_sub, agent_key, thread, namespace, checkpoint_id, task, place);
