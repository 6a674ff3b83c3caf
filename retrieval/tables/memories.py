"""The table that finds turns, facts and knowledge again: the vector of each, and the index of its stemmed words.

The texts are sealed in their own rows; when these are deleted, so are the rows of this table.
"""

from sqlalchemy import (
    CheckConstraint,
    Column,
    ForeignKeyConstraint,
    Index,
    Integer,
    PrimaryKeyConstraint,
    Table,
    Text,
    Uuid,
    text,
)

from retrieval.tables.columns import created, metadata, one_of, queue_columns, search_columns, user
from retrieval.tables.kinds import MemoryKind, MemoryStatus

memories = Table(
    "memories",
    metadata,
    user(),
    Column("id", Uuid, nullable=False),
    Column("agent_key", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("session_id", Uuid, comment="of a turn"),
    Column("turn_number", Integer, comment="of a turn"),
    Column("fact_id", Uuid, comment="of a fact"),
    Column("knowledge_id", Uuid, comment="of an entry of knowledge"),
    *search_columns(),
    Column(
        "status", Text, nullable=False, server_default=text("'pending'"), comment="pending: it waits for its vector"
    ),
    *queue_columns(),
    created(),
    PrimaryKeyConstraint("user_sub", "id"),
    ForeignKeyConstraint(["user_sub", "agent_key"], ["profiles.user_sub", "profiles.agent_key"]),
    ForeignKeyConstraint(
        ["user_sub", "session_id", "turn_number"],
        ["turns.user_sub", "turns.session_id", "turns.number"],
        ondelete="CASCADE",
    ),
    ForeignKeyConstraint(["user_sub", "fact_id"], ["facts.user_sub", "facts.id"], ondelete="CASCADE"),
    ForeignKeyConstraint(["user_sub", "knowledge_id"], ["knowledge.user_sub", "knowledge.id"], ondelete="CASCADE"),
    one_of("kind", MemoryKind),
    one_of("status", MemoryStatus),
    CheckConstraint(
        "(kind = 'turn') = (session_id IS NOT NULL AND turn_number IS NOT NULL)"
        " AND (kind = 'fact') = (fact_id IS NOT NULL)"
        " AND (kind = 'knowledge') = (knowledge_id IS NOT NULL)",
        name="source",
    ),
    CheckConstraint("(model IS NULL) = (embedding IS NULL)", name="vector"),
    Index("memories_agent_idx", "user_sub", "agent_key", "kind"),
    Index("memories_turn_idx", "user_sub", "session_id", "turn_number"),
    Index("memories_fact_idx", "user_sub", "fact_id"),
    Index("memories_knowledge_idx", "user_sub", "knowledge_id"),
    Index("memories_queue_idx", "user_sub", "available_at", postgresql_where=text("status = 'pending'")),
    comment="what finds turns, facts and knowledge again, and the queue of those that wait for a vector",
)
