"""The tables of knowledge: entries about a domain, by category and type, of a user or shared by an agent's users.

The text of a user's entry is sealed; a keyed hash is stored with it, by which the same entry is found again. Shared
entries, and the table that finds them, have no data of users: the operator writes them, and the service reads them.
"""

from sqlalchemy import (
    CheckConstraint,
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

from retrieval.tables.columns import created, metadata, search_columns, user

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

shared_knowledge = Table(
    "shared_knowledge",
    metadata,
    Column("id", Uuid, nullable=False),
    Column("agent_key", Text, nullable=False),
    Column("category", Text, nullable=False),
    Column("entry_type", Text, nullable=False),
    Column("title", Text, nullable=False, comment="empty: it has none"),
    Column("text", Text, nullable=False),
    Column("said", LargeBinary, nullable=False, comment="sha256 of category, type, and title, or text without one"),
    created(),
    Column("updated_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    PrimaryKeyConstraint("id"),
    Index("shared_knowledge_said_idx", "agent_key", "said", unique=True),
    comment="what an operator knows of a domain, for all users of an agent; nothing of any user may stand here",
)

shared_memories = Table(
    "shared_memories",
    metadata,
    Column("id", Uuid, nullable=False),
    Column("agent_key", Text, nullable=False),
    Column("knowledge_id", Uuid, nullable=False),
    *search_columns(),
    PrimaryKeyConstraint("id"),
    ForeignKeyConstraint(["knowledge_id"], ["shared_knowledge.id"], ondelete="CASCADE"),
    CheckConstraint("(model IS NULL) = (embedding IS NULL)", name="vector"),
    Index("shared_memories_agent_idx", "agent_key"),
    Index("shared_memories_knowledge_idx", "knowledge_id"),
    comment="what finds shared knowledge",
)
