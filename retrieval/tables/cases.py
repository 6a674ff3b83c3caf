"""The tables of cases, with their vectors and tools, and the queue of memories that were inserted by SQL.

A case's row is its entry in the worker's queue, too. An inserted memory is stripped of secrets and not sealed until the
worker stores it as a case.
"""

from pgvector.sqlalchemy import Vector
from sqlalchemy import REAL, Boolean, Column, Double, Integer, LargeBinary, Text, Uuid, func
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, TSVECTOR

from retrieval.tables.columns import (
    TIME,
    index,
    needed,
    one_of,
    optional,
    queue,
    refers,
    unique,
    unit_interval,
    user_table,
)
from retrieval.tables.kinds import CaseKind, CaseStatus, InsertedStatus, RunOutcome

ERRORS = "C"
"""Label, in a case's search vector, of words that come from the errors of its calls; ranking ignores labels."""

MAX_SEARCH_TEXT_CHARS = 100_000
"""Largest number of characters of a searchable text, whose tsvector then stays under Postgres's limit of 1 MB."""

INDEXED_DIMENSIONS = (256, 384, 512, 768, 1024, 1536)
"""Dimensions of vectors for which the migrations create an HNSW index, if the database has pgvector."""

cases = user_table(
    "cases",
    ("id",),
    needed("id", Uuid),
    needed("agent_key", Text),
    needed("kind", Text),
    optional("parent_case_id", Uuid, "of a subtask or tool case: the run it belongs to"),
    needed("status", Text),
    needed("task", Text),
    needed("plan", ARRAY(Text), "of sealed words: a token for each step"),
    optional("words", LargeBinary, "sealed: task, plan; null: they stand in their columns"),
    needed("tools", ARRAY(Text), "distinct tool names in order of first use"),
    needed(
        "effects",
        ARRAY(Text),
        "tools that changed something, once for each time they succeeded; without traces the plan's steps",
        default="'{}'",
    ),
    needed("tags", ARRAY(Text)),
    needed("outcome", Text),
    optional("reward", REAL),
    optional("reward_source", Text),
    needed("step_count", Integer),
    needed("error_count", Integer),
    optional("retrieval_id", Uuid),
    optional("session_id", Uuid, "the session that it was a part of; null: none, or one that is gone"),
    optional("used_case_ids", ARRAY(Uuid), "null: the backend did not say"),
    optional("used_procedure_ids", ARRAY(Uuid), "null: the backend did not say"),
    needed("search_text", Text, "to be indexed; a trigger empties it", default="''"),
    optional("search_vector", TSVECTOR, "of search_text, by a trigger"),
    needed("message_hash", LargeBinary, "sha256 of the normalised task and plan"),
    optional("idempotency_key", Text),
    needed("request_hash", LargeBinary, "keyed hash of the request; empty: stored before hashes had keys"),
    needed("key_id", Uuid),
    needed("payload", LargeBinary, "sealed: prompt snapshot, tool traces, turns, procedure"),
    needed("occurrences", Integer, default="1"),
    optional("merged_into", Uuid),
    optional("repeated_at", TIME, "when its newest repeat was retained; null: none is dated"),
    needed(
        "trusted_runs", Integer, "runs whose trusted rewards the reward is the mean of; 0: its own at most", default="0"
    ),
    optional("own_reward", REAL, "of a case with repeats: its own run's trusted reward, a part of the mean"),
    needed("reuse_count", REAL, default="0"),
    needed("reuse_reward", REAL, "sum over reuse_count", default="0"),
    needed("kept_count", Double, "part of reuse_count from decisions that pruning deleted", default="0"),
    needed("kept_reward", Double, "part of reuse_reward from these", default="0"),
    needed("kept_confirmed", Double, "sum of the shares that count for the proof, from these", default="0"),
    needed("kept_earned", Double, "reward that counts for the proof, from these", default="0"),
    optional("last_used_at", TIME),
    needed("source", Text, "who wrote it: the actor of the retain", default="''"),
    needed("proven", Boolean, "others than the run itself said, later, that it went as it claims", default="false"),
    *queue("cases"),
    optional("pruned_at", TIME),
    needed("terms", ARRAY(Integer), "keyed hashes of the task's distinct words", default="'{}'"),
    needed("moves", ARRAY(Integer), "keyed hashes of the plan's moves, with repeats", default="'{}'"),
    Column("updated_at", TIME, nullable=False, server_default=func.now(), onupdate=func.now()),
    unique("idempotency_key"),
    refers("profiles", agent_key="agent_key"),
    refers("user_keys", key_id="key_id"),
    refers("decisions", retrieval_id="id"),
    refers("sessions", session_id="id"),
    one_of("status", CaseStatus),
    one_of("kind", CaseKind),
    one_of("outcome", RunOutcome),
    unit_interval("reward"),
    index("cases_bank_idx", "agent_key", "status", "created_at", "id"),
    index("cases_merged_idx", "merged_into", where="merged_into IS NOT NULL"),
    index("cases_retrieval_idx", "retrieval_id", where="retrieval_id IS NOT NULL"),
    index("cases_session_idx", "session_id", where="session_id IS NOT NULL"),
)

case_embeddings = user_table(
    "case_embeddings",
    ("agent_key", "model", "case_id"),
    needed("agent_key", Text),
    needed("model", Text),
    needed("case_id", Uuid),
    needed("dimension", Integer),
    needed("embedding", Vector(), "real[] where pgvector is missing"),
    needed("approximate", Boolean, "in the HNSW index", default="false"),
    refers("cases", case_id="id", cascade=True),
    index(None, "case_id"),
)

case_tools = user_table(
    "case_tools",
    ("case_id", "tool"),
    needed("case_id", Uuid),
    needed("tool", Text),
    needed("agent_key", Text),
    needed("calls", Integer),
    needed("errors", Integer),
    optional("duration_ms", REAL, "of all calls together; null: not told"),
    needed("forms", ARRAY(Text), "the arguments of calls that worked, values as placeholders"),
    needed("failures", JSONB, "[{cause, fix}], fix null: never put right"),
    refers("cases", case_id="id", cascade=True),
    index(None, "agent_key", "tool"),
)

inserted_memories = user_table(
    "inserted_memories",
    ("id",),
    needed("id", Uuid, "of the case that it becomes"),
    needed("agent_key", Text),
    needed("content", Text),
    needed("metadata", JSONB, "status and data of a learned-procedure record"),
    needed("status", Text, default="'pending'"),
    *queue("inserted_memories"),
    one_of("status", InsertedStatus),
    comment="memories inserted by SQL, stripped and not sealed, until the worker has stored them",
)
