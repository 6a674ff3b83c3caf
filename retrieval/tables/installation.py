"""The tables of the installation: blocks of rate limits, and when each job last ran."""

from sqlalchemy import (
    Column,
    DateTime,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
    text,
)

from retrieval.tables.columns import created, metadata, user

rate_limits = Table(
    "rate_limits",
    metadata,
    user(),
    Column("bucket", LargeBinary, nullable=False, comment="digest of what is limited: user, agent or session"),
    Column("granted", Integer, nullable=False, comment="tokens that the last take got"),
    Column("full_at", DateTime(timezone=True), nullable=False, comment="when the bucket will be full"),
    created(),
    PrimaryKeyConstraint("user_sub", "bucket"),
    prefixes=["UNLOGGED"],
    comment="how much of their limits users have used; empty after a crash, when everybody begins anew",
)

jobs = Table(
    "jobs",
    metadata,
    Column("name", Text, nullable=False),
    Column("last_started", DateTime(timezone=True)),
    Column("last_succeeded", DateTime(timezone=True)),
    Column("failures", Integer, nullable=False, server_default=text("0"), comment="since the last success"),
    Column("last_error", Text, comment="its type, never its message; null after a success"),
    created(),
    PrimaryKeyConstraint("name"),
    comment="what the service does by the clock; no user_sub, for nothing of any user may stand here",
)
"""Last run of each background job. Only the worker's role reads and writes it; it has no data of users."""
