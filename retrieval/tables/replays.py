"""The table of replays: for each profile, the results of ``policy.replay`` on its own runs."""

from sqlalchemy import (
    Column,
    DateTime,
    Double,
    ForeignKeyConstraint,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
)
from sqlalchemy.dialects.postgresql import JSONB

from retrieval.tables.columns import created, metadata, user

replays = Table(
    "replays",
    metadata,
    user(),
    Column("agent_key", Text, nullable=False),
    Column("runs", Integer, nullable=False, comment="newest cases that were replayed"),
    Column("questions", Integer, nullable=False, comment="runs that went well and that an earlier one answers"),
    Column("serves", Text, nullable=False, comment="the order that ranks from now on"),
    Column("tallies", JSONB, nullable=False, comment="by order: first place right, nDCG@4, faded charges"),
    Column("fit", LargeBinary, nullable=False, comment="safetensors: weights of terms, channels and moves"),
    Column("unlike", Double, comment="mean similarity of the vectors of unlike cases; null: too few are unlike"),
    Column("newest", DateTime(timezone=True), nullable=False, comment="creation of the newest case that was replayed"),
    created(),
    PrimaryKeyConstraint("user_sub", "agent_key"),
    ForeignKeyConstraint(["user_sub", "agent_key"], ["profiles.user_sub", "profiles.agent_key"]),
    comment="what a profile's own runs say about the order that ranks them",
)
