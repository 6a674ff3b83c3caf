"""The tables of the installation: keys and their fingerprints, revoked tokens, rate limits, and last runs of jobs."""

from sqlalchemy import (
    BigInteger,
    Column,
    Identity,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
    Uuid,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY

from retrieval.tables.columns import TIME, check, created, metadata, needed, one_of, optional, unique, user_table
from retrieval.tables.kinds import MasterKeyStatus

user_keys = user_table(
    "user_keys",
    ("key_id",),
    needed("key_id", Uuid),
    needed("wrapped_key", LargeBinary, "AES key of the user, wrapped by the master key"),
    optional("master_key", Text, "fingerprint of the master key that wrapped it; null: from before they were noted"),
    unique(),
)

installation_keys = Table(
    "installation_keys",
    metadata,
    needed("name", Text),
    needed("wrapped_key", LargeBinary, "by the master key, bound to name and created_at"),
    needed("created_at", TIME),
    PrimaryKeyConstraint("name"),
    comment="keys of the whole installation, which outlive a change of the master key",
)

master_keys = Table(
    "master_keys",
    metadata,
    needed("fingerprint", Text, "of the key, which stands nowhere in the database"),
    needed("status", Text),
    needed("began_at", TIME, default="now()"),
    needed(
        "replaces",
        ARRAY(Text),
        "fingerprints of the keys that the rotation to this one takes out of use",
        default="'{}'",
    ),
    needed("rewrapped", Integer, "users' keys so far", default="0"),
    optional("finished_at", TIME, "of the rotation to this key"),
    PrimaryKeyConstraint("fingerprint"),
    one_of("status", MasterKeyStatus),
    Index("master_keys_current_idx", "status", unique=True, postgresql_where=text("status = 'current'")),
    comment="by which keys the users' keys are wrapped; no user_sub, for nothing of any user may stand here",
)
"""Master keys that wrap the users' keys. Only the worker's role writes it; rows are not erased with a user."""

token_revocations = Table(
    "token_revocations",
    metadata,
    Column("number", BigInteger, Identity(always=True), nullable=False),
    optional("jti_sha256", LargeBinary, "of the one token meant; null: all of the subject's"),
    optional("subject_sha256", LargeBinary, "whose tokens"),
    optional("issued_before", TIME, "of the subject's tokens, those issued up to here"),
    needed("revoked_at", TIME, default="now()"),
    optional("expires_at", TIME, "when the token ends by itself; null: not known"),
    needed("why", Text),
    PrimaryKeyConstraint("number"),
    check("what", "num_nonnulls(jti_sha256, issued_before) = 1"),
    comment="tokens that are refused although they have not expired; a token itself stands nowhere",
)

rate_limits = user_table(
    "rate_limits",
    ("bucket",),
    needed("bucket", LargeBinary, "digest of what is limited: user, agent or session"),
    needed("granted", Integer, "tokens that the last take got"),
    needed("full_at", TIME, "when the bucket will be full"),
    prefixes=["UNLOGGED"],
    comment="how much of their limits users have used; empty after a crash, when everybody begins anew",
)

jobs = Table(
    "jobs",
    metadata,
    needed("name", Text),
    optional("last_started", TIME),
    optional("last_succeeded", TIME),
    needed("failures", Integer, "since the last success", default="0"),
    optional("last_error", Text, "its type, never its message; null after a success"),
    created(),
    PrimaryKeyConstraint("name"),
    comment="what the service does by the clock; no user_sub, for nothing of any user may stand here",
)
"""Last run of each background job. Only the worker's role reads and writes it; it has no data of users."""
