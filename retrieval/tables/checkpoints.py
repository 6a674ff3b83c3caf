"""The table of checkpoints: states of a backend's graphs, by thread, which casebank keeps and does not read.

A checkpoint has one row for its state and one for each write that is pending on it. Names and values are sealed; keyed
hashes of the names are stored with them, by which a thread is found again.
"""

from sqlalchemy import (
    Column,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
    Uuid,
)

from retrieval.tables.columns import created, metadata, user

checkpoints = Table(
    "checkpoints",
    metadata,
    user(),
    Column("id", Uuid, nullable=False),
    Column("agent_key", Text, nullable=False),
    Column("key_id", Uuid, nullable=False),
    Column("thread", LargeBinary, nullable=False, comment="keyed hash of the thread's id"),
    Column("namespace", LargeBinary, nullable=False, comment="keyed hash of the namespace"),
    Column("checkpoint_id", Uuid, nullable=False, comment="as the backend named it; rises with time"),
    Column("task", LargeBinary, nullable=False, comment="keyed hash of a pending write's task; empty: the state"),
    Column("place", Integer, nullable=False, comment="of a write among those of its task"),
    Column("words", LargeBinary, nullable=False, comment="sealed: thread, namespace, task, value"),
    created(),
    PrimaryKeyConstraint("user_sub", "id"),
    ForeignKeyConstraint(["user_sub", "agent_key"], ["profiles.user_sub", "profiles.agent_key"]),
    ForeignKeyConstraint(["user_sub", "key_id"], ["user_keys.user_sub", "user_keys.key_id"]),
    Index(
        "checkpoints_part_idx",
        *("user_sub", "agent_key", "thread", "namespace", "checkpoint_id", "task", "place"),
        unique=True,
    ),
    comment="states of a backend's graphs, and the writes pending on them",
)
