"""The tables of sessions: conversations turn by turn, kept as they are until they expire.

A session has an id in addition to the name that the backend gave it: sealed texts are bound to the id, and a session
that begins under the name of a deleted one is a new session.
"""

from sqlalchemy import (
    CheckConstraint,
    Column,
    DateTime,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    func,
    text,
)

from retrieval.tables.columns import created, metadata, one_of, queue_columns, user
from retrieval.tables.kinds import SessionStatus

sessions = Table(
    "sessions",
    metadata,
    user(),
    Column("id", Uuid, nullable=False),
    Column("name", Text, nullable=False, comment="as the backend named it"),
    Column("agent_key", Text, nullable=False),
    Column("key_id", Uuid, nullable=False),
    Column("turn_count", Integer, nullable=False, server_default=text("0")),
    Column("turn_bytes", Integer, nullable=False, server_default=text("0"), comment="of all its turns as JSON"),
    Column(
        "taken_turns", Integer, nullable=False, server_default=text("0"), comment="those that runs have taken so far"
    ),
    Column(
        "last_turn_at", DateTime(timezone=True), nullable=False, server_default=func.now(), comment="as it was told"
    ),
    Column("status", Text, nullable=False, server_default=text("'ready'"), comment="pending: it has turns to be read"),
    Column("read_turns", Integer, nullable=False, server_default=text("0"), comment="those that facts were read off"),
    *queue_columns(),
    created(),
    PrimaryKeyConstraint("user_sub", "id"),
    UniqueConstraint("user_sub", "name"),
    ForeignKeyConstraint(["user_sub", "agent_key"], ["profiles.user_sub", "profiles.agent_key"]),
    ForeignKeyConstraint(["user_sub", "key_id"], ["user_keys.user_sub", "user_keys.key_id"]),
    one_of("status", SessionStatus),
    Index("sessions_queue_idx", "user_sub", "available_at", postgresql_where=text("status = 'pending'")),
    Index("sessions_agent_idx", "user_sub", "agent_key", "last_turn_at"),
    comment="conversations of a user with an agent",
)

session_summaries = Table(
    "session_summaries",
    metadata,
    user(),
    Column("session_id", Uuid, nullable=False),
    Column("last_turn", Integer, nullable=False, comment="it tells of the turns up to that number"),
    Column("payload", LargeBinary, nullable=False, comment="sealed: what a language model tells of them, line by line"),
    created(),
    PrimaryKeyConstraint("user_sub", "session_id", "last_turn"),
    ForeignKeyConstraint(["user_sub", "session_id"], ["sessions.user_sub", "sessions.id"], ondelete="CASCADE"),
    CheckConstraint("last_turn > 0", name="last_turn"),
    comment="what language models told of sessions as they grew; a newer one leaves the older ones as they are",
)

turns = Table(
    "turns",
    metadata,
    user(),
    Column("session_id", Uuid, nullable=False),
    Column("number", Integer, nullable=False, comment="1-based, in the order in which they were told"),
    Column("said_at", DateTime(timezone=True), nullable=False, comment="never earlier than the turn before it"),
    Column(
        "utc_offset_min", SmallInteger, nullable=False, server_default=text("0"), comment="minutes east of UTC, as told"
    ),
    Column("payload", LargeBinary, nullable=False, comment="sealed: role, content, tool calls"),
    Column("call_key", Text, comment="idempotency key of the call that it was the first turn of"),
    Column("call_hash", LargeBinary, comment="keyed hash of that call"),
    Column("call_size", Integer, comment="turns of that call"),
    created(),
    PrimaryKeyConstraint("user_sub", "session_id", "number"),
    UniqueConstraint("user_sub", "session_id", "call_key"),
    ForeignKeyConstraint(["user_sub", "session_id"], ["sessions.user_sub", "sessions.id"], ondelete="CASCADE"),
    CheckConstraint("number > 0", name="number"),
    CheckConstraint("num_nonnulls(call_key, call_hash, call_size) IN (0, 3)", name="call"),
    comment="the messages of sessions",
)
