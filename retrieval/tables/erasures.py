"""The tables of erasures: receipts, the chain of their checksums, and erased users who were admitted again."""

from sqlalchemy import (
    BigInteger,
    Column,
    DateTime,
    Identity,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from retrieval.tables.columns import metadata

erasures = Table(
    "erasures",
    metadata,
    Column("user_sub", Text, nullable=False, comment="sha256 of the erased user's name, in hex"),
    Column("erased_at", DateTime(timezone=True), nullable=False),
    Column("receipt", JSONB, nullable=False, comment="what was erased, place by place, signed; it holds no name"),
    PrimaryKeyConstraint("user_sub", "erased_at"),
)

erasure_links = Table(
    "erasure_links",
    metadata,
    Column("seq", BigInteger, nullable=False, autoincrement=False, comment="1-based, without gaps"),
    Column("user_sha256", Text, nullable=False),
    Column("erased_at", DateTime(timezone=True), nullable=False),
    Column("hash", LargeBinary, nullable=False, comment="sha256 of the link before, the number and the tombstone"),
    PrimaryKeyConstraint("seq"),
    comment="the chain of all tombstones; written by a trigger alone",
)

erasure_heads = Table(
    "erasure_heads",
    metadata,
    Column("chain", Text, nullable=False, comment="erasures"),
    Column("seq", BigInteger, nullable=False, comment="of the last link"),
    Column("hash", LargeBinary, nullable=False, comment="of the last link"),
    Column("sealed_seq", BigInteger, nullable=False, server_default=text("0"), comment="up to here the seal goes"),
    Column("seal", LargeBinary, comment="HMAC of sealed_seq and its hash"),
    PrimaryKeyConstraint("chain"),
    comment="where the chain of the tombstones ends: one row",
)

readmissions = Table(
    "readmissions",
    metadata,
    Column("number", BigInteger, Identity(always=True), nullable=False),
    Column("user_sha256", LargeBinary, nullable=False),
    Column("actor_sha256", LargeBinary, nullable=False, comment="whose tokens count as issued then for this user"),
    Column("admitted_at", DateTime(timezone=True), nullable=False, server_default=func.clock_timestamp()),
    PrimaryKeyConstraint("number"),
    comment="services that began again for an erased user, by an explicit call",
)
