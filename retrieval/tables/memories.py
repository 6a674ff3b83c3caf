"""The tables of facts, of knowledge, and of the memories that find these and the turns of sessions again.

A fact is something that a user said about themselves, with the time for which it holds. Knowledge is about a domain, by
category and type: a user's own, or shared by an agent's users. Texts are sealed in their own rows; keyed hashes stored
with them find the same entry again, or a fact that a newer one contradicts. Shared entries have no data of users: the
operator writes them, and the service reads them.
"""

from sqlalchemy import Date, ForeignKeyConstraint, Index, Integer, LargeBinary, PrimaryKeyConstraint, Table, Text, Uuid

from retrieval.tables.columns import (
    TIME,
    check,
    created,
    index,
    metadata,
    needed,
    one_of,
    optional,
    queue,
    refers,
    search_columns,
    user_table,
)
from retrieval.tables.kinds import FactKind, FactOrigin, MemoryKind, MemoryStatus, Speaker

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
    *queue("memories"),
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
    comment="what finds turns, facts and knowledge again, and the queue of those that wait for a vector",
)

facts = user_table(
    "facts",
    ("id",),
    needed("id", Uuid),
    needed("agent_key", Text),
    needed("kind", Text),
    needed("category", Text, default="'other'"),
    needed("key_id", Uuid),
    needed("words", LargeBinary, "sealed: text, subject, attribute, value, unit"),
    optional("slot", LargeBinary, "keyed hash of what there is one value of at a time; null: of any number"),
    needed("said", LargeBinary, "keyed hash of what it says, whatever the wording"),
    optional("about_from", Date, "first day that it speaks of"),
    optional("about_to", Date, "last day"),
    needed("origin", Text),
    needed("said_by", Text, default="'user'"),
    optional("session_id", Uuid, "where it was first told; null: elsewhere, or it is gone"),
    optional("turn_number", Integer, "in that session"),
    optional("case_id", Uuid, "the run in whose turns it was first told; null: elsewhere, or it is gone"),
    needed("told", Integer, default="1"),
    needed("last_told_at", TIME, default="now()"),
    needed("valid_from", TIME),
    optional("valid_to", TIME, "null: it holds"),
    optional("superseded_by", Uuid, "the newer one that contradicts it"),
    refers("profiles", agent_key="agent_key"),
    refers("user_keys", key_id="key_id"),
    refers("sessions", session_id="id"),
    refers("cases", case_id="id"),
    refers("facts", superseded_by="id"),
    one_of("kind", FactKind),
    one_of("origin", FactOrigin),
    one_of("said_by", Speaker),
    check("valid", "valid_to >= valid_from"),
    check("about", "(about_from IS NULL) = (about_to IS NULL) AND about_from <= about_to"),
    index("facts_said_idx", "agent_key", "said"),
    index("facts_slot_idx", "agent_key", "slot", "valid_from"),
    index("facts_session_idx", "session_id"),
    index("facts_case_idx", "case_id"),
    index("facts_superseded_idx", "superseded_by"),
    comment="what users told of themselves, and when it held",
)

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
