"""The tables of the audit and of erasures: entries, receipts, the chains of checksums that prove their order.

An erased user who was admitted again has a row, too.
"""

from sqlalchemy import BigInteger, Column, Identity, LargeBinary, PrimaryKeyConstraint, Table, Text, Uuid, func
from sqlalchemy.dialects.postgresql import JSONB

from retrieval.tables.columns import TIME, metadata, needed, optional, unique, user_table

audit = user_table(
    "audit",
    ("id",),
    needed("id", Uuid),
    optional("agent_key", Text),
    needed("actor", Text),
    needed("action", Text),
    optional("subject_id", Uuid),
    needed("payload", JSONB),
    optional("mac", LargeBinary, "HMAC under the audit key; null: from before there was one"),
)

audit_links = user_table(
    "audit_links",
    ("seq",),
    needed("seq", BigInteger, "1-based, without gaps"),
    needed("entry_id", Uuid, "no foreign key: a link outlives an entry that somebody deletes"),
    needed("hash", LargeBinary, "sha256 of the link before, the number and the entry"),
    unique("entry_id"),
    comment="the chain of a user's audit entries, in the order of their commits; written by a trigger alone",
)

audit_heads = user_table(
    "audit_heads",
    (),
    needed("seq", BigInteger, "of the last link"),
    needed("hash", LargeBinary, "of the last link"),
    needed("pruned_seq", BigInteger, "up to here entries are gone", default="0"),
    optional("pruned_hash", LargeBinary, "of the last link that is gone"),
    needed("sealed_seq", BigInteger, "up to here the seal goes", default="0"),
    optional("seal", LargeBinary, "HMAC of sealed_seq, its hash and what was pruned"),
    comment="where each user's chain ends",
)

erasures = Table(
    "erasures",
    metadata,
    needed("user_sub", Text, "sha256 of the erased user's name, in hex"),
    needed("erased_at", TIME),
    needed("receipt", JSONB, "what was erased, place by place, signed; it holds no name"),
    PrimaryKeyConstraint("user_sub", "erased_at"),
)

erasure_links = Table(
    "erasure_links",
    metadata,
    Column("seq", BigInteger, nullable=False, autoincrement=False, comment="1-based, without gaps"),
    needed("user_sha256", Text),
    needed("erased_at", TIME),
    needed("hash", LargeBinary, "sha256 of the link before, the number and the tombstone"),
    PrimaryKeyConstraint("seq"),
    comment="the chain of all tombstones; written by a trigger alone",
)

erasure_heads = Table(
    "erasure_heads",
    metadata,
    needed("chain", Text, "erasures"),
    needed("seq", BigInteger, "of the last link"),
    needed("hash", LargeBinary, "of the last link"),
    needed("sealed_seq", BigInteger, "up to here the seal goes", default="0"),
    optional("seal", LargeBinary, "HMAC of sealed_seq and its hash"),
    PrimaryKeyConstraint("chain"),
    comment="where the chain of the tombstones ends: one row",
)

readmissions = Table(
    "readmissions",
    metadata,
    Column("number", BigInteger, Identity(always=True), nullable=False),
    needed("user_sha256", LargeBinary),
    needed("actor_sha256", LargeBinary, "whose tokens count as issued then for this user"),
    Column("admitted_at", TIME, nullable=False, server_default=func.clock_timestamp()),
    PrimaryKeyConstraint("number"),
    comment="services that began again for an erased user, by an explicit call",
)
