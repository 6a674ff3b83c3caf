"""The queue of memories that were inserted by SQL: stripped of secrets, not sealed, until the worker stores them."""

from sqlalchemy import Text, Uuid
from sqlalchemy.dialects.postgresql import JSONB

from retrieval.tables.columns import index, needed, one_of, queue_columns, user_table
from retrieval.tables.kinds import InsertedStatus

inserted_memories = user_table(
    "inserted_memories",
    ("id",),
    needed("id", Uuid, "of the case that it becomes"),
    needed("agent_key", Text),
    needed("content", Text),
    needed("metadata", JSONB, "status and data of a learned-procedure record"),
    needed("status", Text, default="'pending'"),
    *queue_columns(),
    one_of("status", InsertedStatus),
    index("inserted_memories_queue_idx", "available_at", where="status = 'pending'"),
    comment="memories inserted by SQL, stripped and not sealed, until the worker has stored them",
)
