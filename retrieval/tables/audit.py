"""The tables of the audit: entries, and the chain of keyed checksums that proves their order."""

from sqlalchemy import BigInteger, LargeBinary, Text, Uuid
from sqlalchemy.dialects.postgresql import JSONB

from retrieval.tables.columns import needed, optional, unique, user_table

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
