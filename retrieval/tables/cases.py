"""The tables of cases: each case, whose row is its entry in the worker's queue, too, with its vectors and its tools."""

from pgvector.sqlalchemy import Vector
from sqlalchemy import (
    REAL,
    Boolean,
    Column,
    DateTime,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, TSVECTOR

from retrieval.tables.columns import created, metadata, one_of, queue_columns, unit_interval, user
from retrieval.tables.kinds import (
    CaseKind,
    CaseStatus,
    RunOutcome,
)

ERRORS = "C"
"""Label, in a case's search vector, of words that come from the errors of its calls; ranking ignores labels."""

MAX_SEARCH_TEXT_CHARS = 100_000
"""Largest number of characters of a searchable text, whose tsvector then stays under Postgres's limit of 1 MB."""

INDEXED_DIMENSIONS = (256, 384, 512, 768, 1024, 1536)
"""Dimensions of vectors for which the migrations create an HNSW index, if the database has pgvector."""

cases = Table(
    "cases",
    metadata,
    user(),
    Column("id", Uuid, nullable=False),
    Column("agent_key", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("parent_case_id", Uuid, comment="of a subtask or tool case: the run it belongs to"),
    Column("status", Text, nullable=False),
    Column("task", Text, nullable=False),
    Column("plan", ARRAY(Text), nullable=False, comment="of sealed words: a token for each step"),
    Column("words", LargeBinary, comment="sealed: task, plan; null: they stand in their columns"),
    Column("tools", ARRAY(Text), nullable=False, comment="distinct tool names in order of first use"),
    Column(
        "effects",
        ARRAY(Text),
        nullable=False,
        server_default=text("'{}'"),
        comment="tools that changed something, once for each time they succeeded; without traces the plan's steps",
    ),
    Column("tags", ARRAY(Text), nullable=False),
    Column("outcome", Text, nullable=False),
    Column("reward", REAL),
    Column("reward_source", Text),
    Column("step_count", Integer, nullable=False),
    Column("error_count", Integer, nullable=False),
    Column("retrieval_id", Uuid),
    Column("session_id", Uuid, comment="the session that it was a part of; null: none, or one that is gone"),
    Column("used_case_ids", ARRAY(Uuid), comment="null: the backend did not say"),
    Column("used_procedure_ids", ARRAY(Uuid), comment="null: the backend did not say"),
    Column(
        "search_text", Text, nullable=False, server_default=text("''"), comment="to be indexed; a trigger empties it"
    ),
    Column("search_vector", TSVECTOR, comment="of search_text, by a trigger"),
    Column("message_hash", LargeBinary, nullable=False, comment="sha256 of the normalised task and plan"),
    Column("idempotency_key", Text),
    Column("request_hash", LargeBinary, nullable=False, comment="sha256 of the request as it was sent"),
    Column("key_id", Uuid, nullable=False),
    Column("payload", LargeBinary, nullable=False, comment="sealed: prompt snapshot, tool traces, turns, procedure"),
    Column("occurrences", Integer, nullable=False, server_default=text("1")),
    Column("merged_into", Uuid),
    Column(
        "trusted_runs",
        Integer,
        nullable=False,
        server_default=text("0"),
        comment="runs whose trusted rewards the reward is the mean of; 0: its own at most",
    ),
    Column("reuse_count", REAL, nullable=False, server_default=text("0")),
    Column("reuse_reward", REAL, nullable=False, server_default=text("0"), comment="sum over reuse_count"),
    Column("last_used_at", DateTime(timezone=True)),
    Column("source", Text, nullable=False, server_default=text("''"), comment="who wrote it: the actor of the retain"),
    Column(
        "proven",
        Boolean,
        nullable=False,
        server_default=text("false"),
        comment="others than the run itself said, later, that it went as it claims",
    ),
    *queue_columns(),
    Column("pruned_at", DateTime(timezone=True)),
    Column(
        "terms",
        ARRAY(Integer),
        nullable=False,
        server_default=text("'{}'"),
        comment="keyed hashes of the task's distinct words",
    ),
    Column(
        "moves",
        ARRAY(Integer),
        nullable=False,
        server_default=text("'{}'"),
        comment="keyed hashes of the plan's moves, with repeats",
    ),
    created(),
    Column("updated_at", DateTime(timezone=True), nullable=False, server_default=func.now(), onupdate=func.now()),
    PrimaryKeyConstraint("user_sub", "id"),
    UniqueConstraint("user_sub", "idempotency_key"),
    ForeignKeyConstraint(["user_sub", "agent_key"], ["profiles.user_sub", "profiles.agent_key"]),
    ForeignKeyConstraint(["user_sub", "key_id"], ["user_keys.user_sub", "user_keys.key_id"]),
    ForeignKeyConstraint(
        ["user_sub", "retrieval_id"],
        ["decisions.user_sub", "decisions.id"],
    ),
    ForeignKeyConstraint(["user_sub", "session_id"], ["sessions.user_sub", "sessions.id"]),
    one_of("status", CaseStatus),
    one_of("kind", CaseKind),
    one_of("outcome", RunOutcome),
    unit_interval("reward"),
    Index("cases_bank_idx", "user_sub", "agent_key", "status", "created_at", "id"),
    Index("cases_queue_idx", "user_sub", "available_at", postgresql_where=text("status = 'pending'")),
    Index("cases_retrieval_idx", "user_sub", "retrieval_id", postgresql_where=text("retrieval_id IS NOT NULL")),
    Index("cases_session_idx", "user_sub", "session_id", postgresql_where=text("session_id IS NOT NULL")),
)

case_embeddings = Table(
    "case_embeddings",
    metadata,
    user(),
    Column("agent_key", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("case_id", Uuid, nullable=False),
    Column("dimension", Integer, nullable=False),
    Column("embedding", Vector(), nullable=False, comment="real[] where pgvector is missing"),
    Column("approximate", Boolean, nullable=False, server_default=text("false"), comment="in the HNSW index"),
    created(),
    PrimaryKeyConstraint("user_sub", "agent_key", "model", "case_id"),
    ForeignKeyConstraint(["user_sub", "case_id"], ["cases.user_sub", "cases.id"], ondelete="CASCADE"),
    Index(None, "user_sub", "case_id"),
)

case_tools = Table(
    "case_tools",
    metadata,
    user(),
    Column("case_id", Uuid, nullable=False),
    Column("tool", Text, nullable=False),
    Column("agent_key", Text, nullable=False),
    Column("calls", Integer, nullable=False),
    Column("errors", Integer, nullable=False),
    Column("duration_ms", REAL, comment="of all calls together; null: not told"),
    Column("forms", ARRAY(Text), nullable=False, comment="the arguments of calls that worked, values as placeholders"),
    Column("failures", JSONB, nullable=False, comment="[{cause, fix}], fix null: never put right"),
    created(),
    PrimaryKeyConstraint("user_sub", "case_id", "tool"),
    ForeignKeyConstraint(["user_sub", "case_id"], ["cases.user_sub", "cases.id"], ondelete="CASCADE"),
    Index(None, "user_sub", "agent_key", "tool"),
)
