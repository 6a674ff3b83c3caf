"""The table of contributions: what the profiles of a fleet give to it, numbers and no content."""

from sqlalchemy import (
    Column,
    DateTime,
    ForeignKeyConstraint,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    Text,
    func,
)

from retrieval.tables.columns import created, metadata, user

contributions = Table(
    "contributions",
    metadata,
    user(),
    Column("agent_key", Text, nullable=False),
    Column("feature_version", SmallInteger, nullable=False),
    Column("decisions", Integer, nullable=False, comment="rewarded ones that are in it"),
    Column("examples", LargeBinary, nullable=False, comment="safetensors: what training sees of them"),
    created(),
    Column("updated_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    PrimaryKeyConstraint("user_sub", "agent_key"),
    ForeignKeyConstraint(["user_sub", "agent_key"], ["profiles.user_sub", "profiles.agent_key"]),
    comment="what profiles give to their fleet: the numbers of their latest rewarded decisions",
)
