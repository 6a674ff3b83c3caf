"""The table of knowledge: entries about a domain, by category and type, that a user keeps for an agent.

What an entry says is sealed; beside it stands a keyed hash, by which the same entry is known again.
"""

from sqlalchemy import (
    Column,
    DateTime,
    ForeignKeyConstraint,
    Index,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
    Uuid,
    func,
)

from retrieval.columns import created, metadata, user

knowledge = Table(
    "knowledge",
    metadata,
    user(),
    Column("id", Uuid, nullable=False),
    Column("agent_key", Text, nullable=False),
    Column("category", Text, nullable=False),
    Column("entry_type", Text, nullable=False),
    Column("key_id", Uuid, nullable=False),
    Column("words", LargeBinary, nullable=False, comment="sealed: title, text"),
    Column("said", LargeBinary, nullable=False, comment="keyed hash of category, type, and title, or text without one"),
    created(),
    Column("updated_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    PrimaryKeyConstraint("user_sub", "id"),
    ForeignKeyConstraint(["user_sub", "agent_key"], ["profiles.user_sub", "profiles.agent_key"]),
    ForeignKeyConstraint(["user_sub", "key_id"], ["user_keys.user_sub", "user_keys.key_id"]),
    Index("knowledge_said_idx", "user_sub", "agent_key", "said", unique=True),
    comment="what users know of a domain",
)
