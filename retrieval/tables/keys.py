"""The tables of keys: wrapped keys of users and of the installation, fingerprints of master keys, revoked tokens."""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    DateTime,
    Identity,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY

from retrieval.tables.columns import created, metadata, one_of, user
from retrieval.tables.kinds import (
    MasterKeyStatus,
)

user_keys = Table(
    "user_keys",
    metadata,
    user(),
    Column("key_id", Uuid, nullable=False),
    Column("wrapped_key", LargeBinary, nullable=False, comment="AES key of the user, wrapped by the master key"),
    Column(
        "master_key", Text, comment="fingerprint of the master key that wrapped it; null: from before they were noted"
    ),
    created(),
    PrimaryKeyConstraint("user_sub", "key_id"),
    UniqueConstraint("user_sub"),
)

installation_keys = Table(
    "installation_keys",
    metadata,
    Column("name", Text, nullable=False),
    Column("wrapped_key", LargeBinary, nullable=False, comment="by the master key, bound to name and created_at"),
    Column("created_at", DateTime(timezone=True), nullable=False),
    PrimaryKeyConstraint("name"),
    comment="keys of the whole installation, which outlive a change of the master key",
)

master_keys = Table(
    "master_keys",
    metadata,
    Column("fingerprint", Text, nullable=False, comment="of the key, which stands nowhere in the database"),
    Column("status", Text, nullable=False),
    Column("began_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column(
        "replaces",
        ARRAY(Text),
        nullable=False,
        server_default=text("'{}'"),
        comment="fingerprints of the keys that the rotation to this one takes out of use",
    ),
    Column("rewrapped", Integer, nullable=False, server_default=text("0"), comment="users' keys so far"),
    Column("finished_at", DateTime(timezone=True), comment="of the rotation to this key"),
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
    Column("jti_sha256", LargeBinary, comment="of the one token meant; null: all of the subject's"),
    Column("subject_sha256", LargeBinary, comment="whose tokens"),
    Column("issued_before", DateTime(timezone=True), comment="of the subject's tokens, those issued up to here"),
    Column("revoked_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("expires_at", DateTime(timezone=True), comment="when the token ends by itself; null: not known"),
    Column("why", Text, nullable=False),
    PrimaryKeyConstraint("number"),
    CheckConstraint("num_nonnulls(jti_sha256, issued_before) = 1", name="what"),
    comment="tokens that are refused although they have not expired; a token itself stands nowhere",
)
