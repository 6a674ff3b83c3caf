"""The table that finds turns, facts and knowledge again: the vector of each, and the index of its stemmed words.

The texts are sealed in their own rows; when these are deleted, so are the rows of this table.
"""

from sqlalchemy import Integer, Text, Uuid

from retrieval.tables.columns import (
    check,
    index,
    needed,
    one_of,
    optional,
    queue_columns,
    refers,
    search_columns,
    user_table,
)
from retrieval.tables.kinds import MemoryKind, MemoryStatus

memories = user_table(
    "memories",
    ("id",),
    needed("id", Uuid),
    needed("agent_key", Text),
    needed("kind", Text),
    optional("session_id", Uuid, "of a turn"),
    optional("turn_number", Integer, "of a turn"),
    optional("fact_id", Uuid, "of a fact"),
    optional("knowledge_id", Uuid, "of an entry of knowledge"),
    *search_columns(),
    needed("status", Text, "pending: it waits for its vector", default="'pending'"),
    *queue_columns(),
    refers("profiles", agent_key="agent_key"),
    refers("turns", session_id="session_id", turn_number="number", cascade=True),
    refers("facts", fact_id="id", cascade=True),
    refers("knowledge", knowledge_id="id", cascade=True),
    one_of("kind", MemoryKind),
    one_of("status", MemoryStatus),
    check(
        "source",
        "(kind = 'turn') = (session_id IS NOT NULL AND turn_number IS NOT NULL)"
        " AND (kind = 'fact') = (fact_id IS NOT NULL) AND (kind = 'knowledge') = (knowledge_id IS NOT NULL)",
    ),
    check("vector", "(model IS NULL) = (embedding IS NULL)"),
    index("memories_agent_idx", "agent_key", "kind"),
    index("memories_turn_idx", "session_id", "turn_number"),
    index("memories_fact_idx", "fact_id"),
    index("memories_knowledge_idx", "knowledge_id"),
    index("memories_queue_idx", "available_at", where="status = 'pending'"),
    comment="what finds turns, facts and knowledge again, and the queue of those that wait for a vector",
)
