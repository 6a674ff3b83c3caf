"""The table of checkpoints: states of a backend's graphs, by thread, which casebank keeps and does not read.

A checkpoint has one row for its state and one for each write that is pending on it. Names and values are sealed; keyed
hashes of the names are stored with them, by which a thread is found again.
"""

from sqlalchemy import Integer, LargeBinary, Text, Uuid

from retrieval.tables.columns import index, needed, refers, user_table

checkpoints = user_table(
    "checkpoints",
    ("id",),
    needed("id", Uuid),
    needed("agent_key", Text),
    needed("key_id", Uuid),
    needed("thread", LargeBinary, "keyed hash of the thread's id"),
    needed("namespace", LargeBinary, "keyed hash of the namespace"),
    needed("checkpoint_id", Uuid, "as the backend named it; rises with time"),
    needed("task", LargeBinary, "keyed hash of a pending write's task; empty: the state"),
    needed("place", Integer, "of a write among those of its task"),
    needed("words", LargeBinary, "sealed: thread, namespace, task, value"),
    needed("size", Integer, "bytes of the words as JSON; 0: stored before sizes were", default="0"),
    refers("profiles", agent_key="agent_key"),
    refers("user_keys", key_id="key_id"),
    index("checkpoints_part_idx", "agent_key", "thread", "namespace", "checkpoint_id", "task", "place", unique=True),
    comment="states of a backend's graphs, and the writes pending on them",
)
