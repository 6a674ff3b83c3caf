"""The tables of procedures: each version, the reviews by users, and runs whose procedures are to be revised."""

from sqlalchemy import REAL, Boolean, Column, Computed, Double, ForeignKeyConstraint, Integer, Text, Uuid
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, TSVECTOR

from retrieval.tables.columns import (
    SEARCH_CONFIGURATION,
    TIME,
    index,
    needed,
    one_of,
    optional,
    queue,
    refers,
    user_table,
)
from retrieval.tables.kinds import (
    AbstractionLevel,
    ProcedureKind,
    ProcedureOrigin,
    ProcedureStatus,
    ReflectionStatus,
    ReviewVerdict,
)

procedures = user_table(
    "procedures",
    ("id", "version"),
    needed("id", Uuid),
    needed("version", Integer),
    needed("agent_key", Text),
    needed("kind", Text, default="'script'"),
    needed("origin", Text, default="'rules'"),
    optional("level", Text, "how abstract it is; null of a lesson from a failure"),
    needed("status", Text, default="'active'"),
    needed("pinned", Boolean, "by hand: nothing replaces it", default="false"),
    optional("parent_version", Integer, "the version that this one revises"),
    optional("case_id", Uuid, "the run whose words it is made of; null once that was pruned"),
    needed("record", JSONB, "procedure_name, semantic_description, …: the learned-procedure record"),
    needed("task_type", Text, default="''"),
    needed("trigger", Text, "one sentence: when to use it", default="''"),
    needed("domain", Text, default="''"),
    optional("query_kind", Text, "what kind of thing its run was asked for; null: older than this column"),
    optional("success_score", REAL, "of its run, 0 to 1; null: older than this column"),
    optional("duration_ms", REAL, "of all calls of its run together; null: not told"),
    needed("source_case_ids", ARRAY(Uuid), "runs merged into it", default="'{}'"),
    needed("occurrences", Integer, default="1"),
    needed("uses", REAL, default="0"),
    needed("use_reward", REAL, "sum over uses", default="0"),
    needed("kept_uses", Double, "part of uses from decisions that pruning deleted", default="0"),
    needed("kept_use_reward", Double, "part of use_reward from these", default="0"),
    optional("last_used_at", TIME),
    needed("search_text", Text, default="''"),
    Column(
        "search_vector",
        TSVECTOR,
        Computed(f"to_tsvector('{SEARCH_CONFIGURATION}'::regconfig, search_text)", persisted=True),
    ),
    optional("embedding_model", Text),
    optional("embedding", ARRAY(REAL), "of the trigger, in the space of embedding_model"),
    refers("cases", case_id="id", cascade=True),
    ForeignKeyConstraint(
        ["user_sub", "id", "parent_version"],
        ["procedures.user_sub", "procedures.id", "procedures.version"],
        name="procedures_parent_fkey",
        ondelete="CASCADE",
    ),
    one_of("kind", ProcedureKind),
    one_of("origin", ProcedureOrigin),
    one_of("level", AbstractionLevel),
    one_of("status", ProcedureStatus),
    index(None, "case_id"),
    index("procedures_active_idx", "agent_key", "id", where="status = 'active'", unique=True),
)

procedure_reviews = user_table(
    "procedure_reviews",
    ("procedure_id", "version"),
    needed("procedure_id", Uuid),
    needed("version", Integer),
    needed("verdict", Text),
    optional("root_cause_right", Boolean, "null: not said"),
    optional("steps_complete", Boolean, "null: not said"),
    needed("note", Text, "the reviewer's words, redacted", default="''"),
    needed("actor", Text, "who reviewed it"),
    refers("procedures", procedure_id="id", version="version", cascade=True),
    one_of("verdict", ReviewVerdict),
    comment="what a person found a version of a procedure to be; the newest review of each",
)

reflections = user_table(
    "reflections",
    ("id",),
    needed("id", Uuid, "of the case of the run"),
    needed("agent_key", Text),
    needed("status", Text, default="'pending'"),
    needed("is_new", Boolean, "nothing was learned from the run yet", default="false"),
    *queue("reflections"),
    refers("cases", id="id", cascade=True),
    one_of("status", ReflectionStatus),
    comment="the queue of findable cases to learn from: new ones, and those whose run turned out later to have failed",
)
