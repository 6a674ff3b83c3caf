CREATE TABLE master_keys (
    -- by which keys the users' keys are wrapped; no user_sub, for nothing of any user may stand here
    fingerprint text NOT NULL,  -- of the key, which stands nowhere in the database
    status text NOT NULL CHECK (status IN ('current', 'retiring', 'retired')),
    began_at timestamptz NOT NULL DEFAULT now(),
    replaces text[] NOT NULL DEFAULT '{}',  -- fingerprints of the keys that the rotation to this one takes out of use
    rewrapped integer NOT NULL DEFAULT 0,  -- users' keys so far
    finished_at timestamptz,  -- of the rotation to this key
    PRIMARY KEY (fingerprint)
);
CREATE UNIQUE INDEX master_keys_current_idx ON master_keys (status) WHERE status = 'current';

CREATE TABLE installation_keys (  -- keys of the whole installation, which outlive a change of the master key
    name text NOT NULL,
    wrapped_key bytea NOT NULL,  -- by the master key, bound to name and created_at
    created_at timestamptz NOT NULL,
    PRIMARY KEY (name)
);

CREATE TABLE token_revocations (
    -- tokens that are refused although they have not expired; a token itself stands nowhere
    number bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
    jti_sha256 bytea,  -- of the one token meant; null: all of the subject's
    subject_sha256 bytea,  -- whose tokens
    issued_before timestamptz,  -- of the subject's tokens, those issued up to here
    revoked_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz,  -- when the token ends by itself; null: not known
    why text NOT NULL,
    PRIMARY KEY (number),
    CONSTRAINT token_revocations_what_check CHECK (num_nonnulls(jti_sha256, issued_before) = 1)
);

CREATE TABLE readmissions (  -- services that began again for an erased user, by an explicit call
    number bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
    user_sha256 bytea NOT NULL,
    actor_sha256 bytea NOT NULL,  -- whose tokens count as issued then for this user
    admitted_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (number)
);

CREATE TABLE jobs (  -- what the service does by the clock; no user_sub, for nothing of any user may stand here
    name text NOT NULL,
    last_started timestamptz,
    last_succeeded timestamptz,
    failures integer NOT NULL DEFAULT 0,  -- since the last success
    last_error text,  -- its type, never its message; null after a success
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (name)
);
