"""The tables of the installation: blocks of rate limits, and when each job last ran."""

from sqlalchemy import Integer, LargeBinary, PrimaryKeyConstraint, Table, Text

from retrieval.tables.columns import TIME, created, metadata, needed, optional, user_table

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
