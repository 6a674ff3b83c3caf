"""The tables of knowledge: entries about a domain, by category and type, of a user or shared by an agent's users.

The text of a user's entry is sealed; a keyed hash is stored with it, by which the same entry is found again. Shared
entries, and the table that finds them, have no data of users: the operator writes them, and the service reads them.
"""

from sqlalchemy import ForeignKeyConstraint, Index, LargeBinary, PrimaryKeyConstraint, Table, Text, Uuid

from retrieval.tables.columns import TIME, check, created, index, metadata, needed, refers, search_columns, user_table

knowledge = user_table(
    "knowledge",
    ("id",),
    needed("id", Uuid),
    needed("agent_key", Text),
    needed("category", Text),
    needed("entry_type", Text),
    needed("key_id", Uuid),
    needed("words", LargeBinary, "sealed: title, text"),
    needed("said", LargeBinary, "keyed hash of category, type, and title, or text without one"),
    needed("updated_at", TIME, default="now()"),
    refers("profiles", agent_key="agent_key"),
    refers("user_keys", key_id="key_id"),
    index("knowledge_said_idx", "agent_key", "said", unique=True),
    comment="what users know of a domain",
)

shared_knowledge = Table(
    "shared_knowledge",
    metadata,
    needed("id", Uuid),
    needed("agent_key", Text),
    needed("category", Text),
    needed("entry_type", Text),
    needed("title", Text, "empty: it has none"),
    needed("text", Text),
    needed("said", LargeBinary, "sha256 of category, type, and title, or text without one"),
    created(),
    needed("updated_at", TIME, default="now()"),
    PrimaryKeyConstraint("id"),
    Index("shared_knowledge_said_idx", "agent_key", "said", unique=True),
    comment="what an operator knows of a domain, for all users of an agent; nothing of any user may stand here",
)

shared_memories = Table(
    "shared_memories",
    metadata,
    needed("id", Uuid),
    needed("agent_key", Text),
    needed("knowledge_id", Uuid),
    *search_columns(),
    PrimaryKeyConstraint("id"),
    ForeignKeyConstraint(["knowledge_id"], ["shared_knowledge.id"], ondelete="CASCADE"),
    check("vector", "(model IS NULL) = (embedding IS NULL)"),
    Index("shared_memories_agent_idx", "agent_key"),
    Index("shared_memories_knowledge_idx", "knowledge_id"),
    comment="what finds shared knowledge",
)
