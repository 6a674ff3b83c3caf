"""The tables of sessions: conversations turn by turn, kept as they are until they expire.

A session has an id in addition to the name that the backend gave it: sealed texts are bound to the id, and a session
that begins under the name of a deleted one is a new session.
"""

from sqlalchemy import Integer, LargeBinary, SmallInteger, Text, Uuid

from retrieval.tables.columns import (
    TIME,
    check,
    index,
    needed,
    one_of,
    optional,
    queue,
    refers,
    unique,
    user_table,
)
from retrieval.tables.kinds import SessionStatus

sessions = user_table(
    "sessions",
    ("id",),
    needed("id", Uuid),
    needed("name", Text, "as the backend named it"),
    needed("agent_key", Text),
    needed("key_id", Uuid),
    needed("turn_count", Integer, default="0"),
    needed("turn_bytes", Integer, "of all its turns as JSON", default="0"),
    needed("taken_turns", Integer, "those that runs have taken so far", default="0"),
    needed("last_turn_at", TIME, "as it was told", default="now()"),
    needed("status", Text, "pending: it has turns to be read", default="'ready'"),
    needed("read_turns", Integer, "those that facts were read off", default="0"),
    *queue("sessions"),
    unique("name"),
    refers("profiles", agent_key="agent_key"),
    refers("user_keys", key_id="key_id"),
    one_of("status", SessionStatus),
    index("sessions_agent_idx", "agent_key", "last_turn_at"),
    comment="conversations of a user with an agent",
)

session_summaries = user_table(
    "session_summaries",
    ("session_id", "last_turn"),
    needed("session_id", Uuid),
    needed("last_turn", Integer, "it tells of the turns up to that number"),
    needed("payload", LargeBinary, "sealed: what a language model tells of them, line by line"),
    refers("sessions", session_id="id", cascade=True),
    check("last_turn", "last_turn > 0"),
    comment="what language models told of sessions as they grew; a newer one leaves the older ones as they are",
)

turns = user_table(
    "turns",
    ("session_id", "number"),
    needed("session_id", Uuid),
    needed("number", Integer, "1-based, in the order in which they were told"),
    needed("said_at", TIME, "never earlier than the turn before it"),
    needed("utc_offset_min", SmallInteger, "minutes east of UTC, as told", default="0"),
    needed("payload", LargeBinary, "sealed: role, content, tool calls"),
    optional("call_key", Text, "idempotency key of the call that it was the first turn of"),
    optional("call_hash", LargeBinary, "keyed hash of that call"),
    optional("call_size", Integer, "turns of that call"),
    unique("session_id", "call_key"),
    refers("sessions", session_id="id", cascade=True),
    check("number", "number > 0"),
    check("call", "num_nonnulls(call_key, call_hash, call_size) IN (0, 3)"),
    comment="the messages of sessions",
)
