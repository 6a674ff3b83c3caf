"""The queue of memories that were inserted by SQL: stripped of secrets, not sealed, until the worker stores them."""

from sqlalchemy import Column, Index, PrimaryKeyConstraint, Table, Text, Uuid, text
from sqlalchemy.dialects.postgresql import JSONB

from retrieval.tables.columns import created, metadata, one_of, queue_columns, user
from retrieval.tables.kinds import InsertedStatus

inserted_memories = Table(
    "inserted_memories",
    metadata,
    user(),
    Column("id", Uuid, nullable=False, comment="of the case that it becomes"),
    Column("agent_key", Text, nullable=False),
    Column("content", Text, nullable=False),
    Column("metadata", JSONB, nullable=False, comment="status and data of a learned-procedure record"),
    Column("status", Text, nullable=False, server_default=text("'pending'")),
    *queue_columns(),
    created(),
    PrimaryKeyConstraint("user_sub", "id"),
    one_of("status", InsertedStatus),
    Index("inserted_memories_queue_idx", "user_sub", "available_at", postgresql_where=text("status = 'pending'")),
    comment="memories inserted by SQL, stripped and not sealed, until the worker has stored them",
)
