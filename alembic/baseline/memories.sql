CREATE TABLE facts (  -- what users told of themselves, and when it held
    user_sub text NOT NULL,
    id uuid NOT NULL,
    agent_key text NOT NULL,
    kind text NOT NULL CHECK (kind IN ('goal', 'preference', 'event', 'fact')),
    category text NOT NULL DEFAULT 'other',
    key_id uuid NOT NULL,
    words bytea NOT NULL,  -- sealed: text, subject, attribute, value, unit
    slot bytea,  -- keyed hash of what there is one value of at a time; null: of any number
    said bytea NOT NULL,  -- keyed hash of what it says, whatever the wording
    about_from date,  -- first day that it speaks of
    about_to date,  -- last day
    origin text NOT NULL CHECK (origin IN ('turn', 'run', 'hand')),
    said_by text NOT NULL DEFAULT 'user' CHECK (said_by IN ('user', 'assistant', 'tool')),
    session_id uuid,  -- where it was first told; null: elsewhere, or it is gone
    turn_number integer,  -- in that session
    case_id uuid,  -- the run in whose turns it was first told; null: elsewhere, or it is gone
    told integer NOT NULL DEFAULT 1,
    last_told_at timestamptz NOT NULL DEFAULT now(),
    valid_from timestamptz NOT NULL,
    valid_to timestamptz,  -- null: it holds
    superseded_by uuid,  -- the newer one that contradicts it
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (user_sub, id),
    FOREIGN KEY (user_sub, agent_key) REFERENCES profiles,
    FOREIGN KEY (user_sub, key_id) REFERENCES user_keys,
    FOREIGN KEY (user_sub, session_id) REFERENCES sessions,
    FOREIGN KEY (user_sub, case_id) REFERENCES cases,
    FOREIGN KEY (user_sub, superseded_by) REFERENCES facts,
    CONSTRAINT facts_valid_check CHECK (valid_to >= valid_from),
    CONSTRAINT facts_about_check CHECK ((about_from IS NULL) = (about_to IS NULL) AND about_from <= about_to)
);
CREATE INDEX facts_case_idx ON facts (user_sub, case_id);
CREATE INDEX facts_said_idx ON facts (user_sub, agent_key, said);
CREATE INDEX facts_session_idx ON facts (user_sub, session_id);
CREATE INDEX facts_slot_idx ON facts (user_sub, agent_key, slot, valid_from);
CREATE INDEX facts_superseded_idx ON facts (user_sub, superseded_by);

CREATE TABLE knowledge (  -- what users know of a domain
    user_sub text NOT NULL,
    id uuid NOT NULL,
    agent_key text NOT NULL,
    category text NOT NULL,
    entry_type text NOT NULL,
    key_id uuid NOT NULL,
    words bytea NOT NULL,  -- sealed: title, text
    said bytea NOT NULL,  -- keyed hash of category, type, and title, or text without one
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (user_sub, id),
    FOREIGN KEY (user_sub, agent_key) REFERENCES profiles,
    FOREIGN KEY (user_sub, key_id) REFERENCES user_keys
);
CREATE UNIQUE INDEX knowledge_said_idx ON knowledge (user_sub, agent_key, said);

CREATE TABLE memories (  -- what finds turns, facts and knowledge again, and the queue of those that wait for a vector
    user_sub text NOT NULL,
    id uuid NOT NULL,
    agent_key text NOT NULL,
    kind text NOT NULL CHECK (kind IN ('turn', 'fact', 'knowledge')),
    session_id uuid,  -- of a turn
    turn_number integer,  -- of a turn
    fact_id uuid,  -- of a fact
    search_text text NOT NULL DEFAULT '',  -- to be indexed; a trigger empties it
    search_vector tsvector,  -- of search_text, by a trigger
    word_count integer NOT NULL DEFAULT 0,  -- of search_text without stop words, by a trigger
    model text,  -- of the vector; null: it has none yet, or none can be made
    embedding {vector},  -- real[] where pgvector is missing
    status text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'ready', 'dead')),
        -- pending: it waits for its vector
    attempts smallint NOT NULL DEFAULT 0,
    available_at timestamptz NOT NULL DEFAULT now(),
    lease_token uuid,
    last_error text,
    created_at timestamptz NOT NULL DEFAULT now(),
    knowledge_id uuid,  -- of an entry of knowledge
    PRIMARY KEY (user_sub, id),
    FOREIGN KEY (user_sub, agent_key) REFERENCES profiles,
    FOREIGN KEY (user_sub, session_id, turn_number) REFERENCES turns ON DELETE CASCADE,
    FOREIGN KEY (user_sub, fact_id) REFERENCES facts ON DELETE CASCADE,
    FOREIGN KEY (user_sub, knowledge_id) REFERENCES knowledge ON DELETE CASCADE,
    CONSTRAINT memories_vector_check CHECK ((model IS NULL) = (embedding IS NULL)),
    CONSTRAINT memories_source_check CHECK (
        (kind = 'turn') = (session_id IS NOT NULL AND turn_number IS NOT NULL)
        AND (kind = 'fact') = (fact_id IS NOT NULL)
        AND (kind = 'knowledge') = (knowledge_id IS NOT NULL)
    )
);
CREATE INDEX memories_agent_idx ON memories (user_sub, agent_key, kind);
CREATE INDEX memories_fact_idx ON memories (user_sub, fact_id);
CREATE INDEX memories_knowledge_idx ON memories (user_sub, knowledge_id);
CREATE INDEX memories_queue_idx ON memories (user_sub, available_at) WHERE status = 'pending';
CREATE INDEX memories_turn_idx ON memories (user_sub, session_id, turn_number);

CREATE TABLE shared_knowledge (
    -- what an operator knows of a domain, for all users of an agent; nothing of any user may stand here
    id uuid NOT NULL,
    agent_key text NOT NULL,
    category text NOT NULL,
    entry_type text NOT NULL,
    title text NOT NULL,  -- empty: it has none
    text text NOT NULL,
    said bytea NOT NULL,  -- sha256 of category, type, and title, or text without one
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (id)
);
CREATE UNIQUE INDEX shared_knowledge_said_idx ON shared_knowledge (agent_key, said);

CREATE TABLE shared_memories (  -- what finds shared knowledge
    id uuid NOT NULL,
    agent_key text NOT NULL,
    knowledge_id uuid NOT NULL,
    search_text text NOT NULL DEFAULT '',  -- to be indexed; a trigger empties it
    search_vector tsvector,  -- of search_text, by a trigger
    word_count integer NOT NULL DEFAULT 0,  -- of search_text without stop words, by a trigger
    model text,  -- of the vector; null: it has none yet, or none can be made
    embedding {vector},  -- real[] where pgvector is missing
    PRIMARY KEY (id),
    FOREIGN KEY (knowledge_id) REFERENCES shared_knowledge ON DELETE CASCADE,
    CONSTRAINT shared_memories_vector_check CHECK ((model IS NULL) = (embedding IS NULL))
);
CREATE INDEX shared_memories_agent_idx ON shared_memories (agent_key);
CREATE INDEX shared_memories_knowledge_idx ON shared_memories (knowledge_id);

-- The text is never stored: it is sealed in the turn, the fact or the entry.
CREATE FUNCTION casebank_index_memory() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    NEW.search_vector := to_tsvector('english'::regconfig, NEW.search_text);
    NEW.word_count := (SELECT coalesce(sum(cardinality(positions)), 0) FROM unnest(NEW.search_vector));
    NEW.search_text := '';
    RETURN NEW;
END $$;

CREATE TRIGGER index_words BEFORE INSERT OR UPDATE OF search_text ON memories
FOR EACH ROW WHEN (NEW.search_text <> '') EXECUTE FUNCTION casebank_index_memory();

CREATE TRIGGER index_words BEFORE INSERT OR UPDATE OF search_text ON shared_memories
FOR EACH ROW WHEN (NEW.search_text <> '') EXECUTE FUNCTION casebank_index_memory();
