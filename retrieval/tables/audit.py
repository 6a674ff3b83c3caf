"""The tables of the audit: entries, and the chain of keyed checksums that proves their order."""

from sqlalchemy import (
    BigInteger,
    Column,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from retrieval.tables.columns import created, metadata, user

audit = Table(
    "audit",
    metadata,
    user(),
    Column("id", Uuid, nullable=False),
    Column("agent_key", Text),
    Column("actor", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("subject_id", Uuid),
    Column("payload", JSONB, nullable=False),
    created(),
    Column("mac", LargeBinary, comment="HMAC under the audit key; null: from before there was one"),
    PrimaryKeyConstraint("user_sub", "id"),
)

audit_links = Table(
    "audit_links",
    metadata,
    user(),
    Column("seq", BigInteger, nullable=False, comment="1-based, without gaps"),
    Column("entry_id", Uuid, nullable=False, comment="no foreign key: a link outlives an entry that somebody deletes"),
    Column("hash", LargeBinary, nullable=False, comment="sha256 of the link before, the number and the entry"),
    created(),
    PrimaryKeyConstraint("user_sub", "seq"),
    UniqueConstraint("user_sub", "entry_id"),
    comment="the chain of a user's audit entries, in the order of their commits; written by a trigger alone",
)

audit_heads = Table(
    "audit_heads",
    metadata,
    user(),
    Column("seq", BigInteger, nullable=False, comment="of the last link"),
    Column("hash", LargeBinary, nullable=False, comment="of the last link"),
    Column("pruned_seq", BigInteger, nullable=False, server_default=text("0"), comment="up to here entries are gone"),
    Column("pruned_hash", LargeBinary, comment="of the last link that is gone"),
    Column("sealed_seq", BigInteger, nullable=False, server_default=text("0"), comment="up to here the seal goes"),
    Column("seal", LargeBinary, comment="HMAC of sealed_seq, its hash and what was pruned"),
    created(),
    PrimaryKeyConstraint("user_sub"),
    comment="where each user's chain ends",
)
