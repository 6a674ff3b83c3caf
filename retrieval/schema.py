"""Every table of the case bank, in one MetaData.

Every primary key, unique key and foreign key starts with ``user_sub``: row-level security, erasure
and a distribution column all come from the same column. The exceptions are the tables about the service itself,
which hold nothing of any user but digests: ``jobs``, ``master_keys``, ``installation_keys``, ``erasure_links``,
``erasure_heads``, ``token_revocations`` and ``readmissions``. The migrations create what stands here, and
``alembic check`` proves that the two agree.
"""

from pgvector.sqlalchemy import Vector
from sqlalchemy import (
    REAL,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Computed,
    Date,
    DateTime,
    ForeignKeyConstraint,
    Identity,
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
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, TSVECTOR

from retrieval import columns, findings_schema
from retrieval.columns import created as _created
from retrieval.columns import one_of as _one_of
from retrieval.columns import unit_interval as _unit_interval
from retrieval.columns import user as _user
from retrieval.fact_schema import facts
from retrieval.fleet_schema import contributions
from retrieval.kinds import (
    Abstraction,
    AbstractionLevel,
    AnalystChoice,
    Arm,
    CaseKind,
    CaseStatus,
    LlmPurpose,
    MasterKeyStatus,
    PolicyStatus,
    ProcedureKind,
    ProcedureOrigin,
    ProcedureStatus,
    QueryKind,
    ReviewVerdict,
    RewardSource,
    Rewrite,
    RunOutcome,
    RunStatus,
    SummaryChoice,
)
from retrieval.knowledge_schema import knowledge
from retrieval.memory_schema import memories
from retrieval.session_schema import session_summaries, sessions, turns

SEARCH_CONFIGURATION = "english"
"""The text search configuration of stored vectors and of queries; both must agree."""

ERRORS = "C"
"""The label of those words of a case's index that come from the errors of its calls; ranking takes no notice of it."""

MAX_SEARCH_TEXT_CHARS = 100_000
"""Longest searchable text: the tsvector of any such text stays under Postgres' limit of 1 MB."""

INDEXED_DIMENSIONS = (256, 384, 512, 768, 1024, 1536)
"""The dimensions of vectors for which the migrations make an HNSW index, where pgvector can be had."""

metadata = columns.metadata
findings = findings_schema.findings

SHARED = ""
"""The ``user_sub`` of a fleet's policies, and the ``agent_key`` of what all agents share; nobody is called so."""

ALL_AGENTS = ""
"""The ``agent_key`` of a search, and of its row in ``decisions``, that is about all of a user's agents; none is called
so."""

profiles = Table(
    "profiles",
    metadata,
    _user(),
    Column("agent_key", Text, nullable=False),
    Column("enabled", Boolean, nullable=False, server_default=text("true")),
    Column("window_size", Integer, nullable=False, server_default=text("200")),
    Column("ttl_days", Integer),
    Column("k", SmallInteger, nullable=False, server_default=text("4")),
    Column("full_text_weight", REAL, nullable=False, server_default=text("1")),
    Column("semantic_weight", REAL, nullable=False, server_default=text("1")),
    Column("rrf_k", REAL, nullable=False, server_default=text("50")),
    Column("learning", Boolean, nullable=False, server_default=text("true"), comment="whether a policy is trained"),
    Column("explore", REAL, nullable=False, server_default=text("0.05"), comment="share of slates with a drawn place"),
    Column("canary", REAL, nullable=False, server_default=text("0.25"), comment="share of a policy on trial"),
    Column("contribute", Boolean, comment="whether its numbers train the fleet; null: as the service has it"),
    Column("receive", Boolean, comment="whether the fleet's policy serves it; null: as the service has it"),
    Column("fleet_left_at", DateTime(timezone=True), comment="of the fleet's policies, those since then serve it"),
    Column("embedding_model", Text, comment="the one vector space that searches of this profile use"),
    Column(
        "approximate",
        Boolean,
        nullable=False,
        server_default=text("false"),
        comment="every vector of the profile is in the HNSW index",
    ),
    Column("rewrite", Text, nullable=False, server_default=text("'off'"), comment="who turns a query into a search"),
    Column("analyst", Text, nullable=False, server_default=text("'rules'"), comment="who explains failures"),
    Column("abstraction", Text, nullable=False, server_default=text("'hybrid'"), comment="off, or the level"),
    Column(
        "least_success", REAL, nullable=False, server_default=text("0.7"), comment="of a run that makes a procedure"
    ),
    Column("procedures", SmallInteger, nullable=False, server_default=text("2"), comment="most in one answer"),
    Column("procedure_similarity", REAL, comment="least of trigger and query; null: the embedding model's own"),
    Column("llm_tokens_per_day", Integer, comment="null: as many as the service allows"),
    Column(
        "tool_kinds", JSONB, nullable=False, server_default=text("'{}'"), comment="of tools whose names do not tell"
    ),
    Column("session_ttl_days", Integer, comment="since its last turn; null: a session stays"),
    Column("session_summary", Text, nullable=False, server_default=text("'rules'"), comment="who tells of older turns"),
    Column("session_share", REAL, nullable=False, server_default=text("0.4"), comment="of a context's tokens, at most"),
    Column("facts_share", REAL, nullable=False, server_default=text("0.2"), comment="likewise"),
    Column("procedures_share", REAL, nullable=False, server_default=text("0.33333334"), comment="likewise"),
    _created(),
    PrimaryKeyConstraint("user_sub", "agent_key"),
    CheckConstraint("window_size > 0", name="window_size"),
    CheckConstraint("k BETWEEN 1 AND 50", name="k"),
    _unit_interval("explore"),
    CheckConstraint("canary >= 0 AND canary <= 0.9", name="canary"),
    _one_of("rewrite", Rewrite),
    _one_of("analyst", AnalystChoice),
    _one_of("abstraction", Abstraction),
    _one_of("session_summary", SummaryChoice),
    _unit_interval("least_success"),
    CheckConstraint("procedures BETWEEN 0 AND 10", name="procedures"),
    _unit_interval("session_share"),
    _unit_interval("facts_share"),
    _unit_interval("procedures_share"),
)

user_keys = Table(
    "user_keys",
    metadata,
    _user(),
    Column("key_id", Uuid, nullable=False),
    Column("wrapped_key", LargeBinary, nullable=False, comment="AES key of the user, wrapped by the master key"),
    Column(
        "master_key", Text, comment="fingerprint of the master key that wrapped it; null: from before they were noted"
    ),
    _created(),
    PrimaryKeyConstraint("user_sub", "key_id"),
    UniqueConstraint("user_sub"),
)

decisions = Table(
    "decisions",
    metadata,
    _user(),
    Column("id", Uuid, nullable=False),
    Column("agent_key", Text, nullable=False),
    Column("query", Text, nullable=False),
    Column("mode", Text, nullable=False),
    Column("degraded", ARRAY(Text), nullable=False),
    Column("policy_version", Text, nullable=False),
    Column("feature_version", SmallInteger, nullable=False),
    Column("seed", BigInteger, nullable=False),
    Column("arm", Text, nullable=False),
    Column("k", SmallInteger, nullable=False),
    Column("min_similarity", REAL),
    Column("slate_propensity", REAL, nullable=False, comment="of the whole slate, over every arm and draw"),
    Column("candidate_ids", ARRAY(Uuid), nullable=False),
    Column("candidate_groups", ARRAY(SmallInteger), nullable=False, comment="candidates of one group say the same"),
    Column("candidate_sources", ARRAY(SmallInteger), nullable=False, comment="one number for each source"),
    Column("features", LargeBinary, nullable=False, comment="float16, candidates x features of feature_version"),
    Column("scores", ARRAY(REAL), nullable=False, comment="what the arm ordered the candidates by"),
    Column("query_model", Text),
    Column("query_vector", ARRAY(REAL), comment="in the space of query_model"),
    Column("rewritten", Text, comment="what was searched for in place of the query; null: the query itself"),
    Column("told", LargeBinary, comment="sealed: what memory_context said; null: it was not kept, or is forgotten"),
    Column("words", LargeBinary, comment="sealed: query, rewritten; null: they stand in their columns"),
    Column("query_group", BigInteger, comment="of sealed words: the same for equal queries of the user"),
    Column("procedure_ids", ARRAY(Uuid), nullable=False, server_default=text("'{}'"), comment="told with the slate"),
    Column("procedure_versions", ARRAY(Integer), nullable=False, server_default=text("'{}'"), comment="of those"),
    Column("used_procedure_ids", ARRAY(Uuid), comment="of those, what the backend said it used; null: it did not say"),
    Column("tokens", Integer, nullable=False),
    Column("reward", REAL),
    Column("reward_source", Text),
    _created(),
    PrimaryKeyConstraint("user_sub", "id"),
    _unit_interval("reward"),
    _one_of("arm", Arm),
    CheckConstraint("slate_propensity > 0 AND slate_propensity <= 1", name="slate_propensity"),
    Index("decisions_rewarded_idx", "user_sub", "agent_key", "id", postgresql_where=text("reward IS NOT NULL")),
)

policies = Table(
    "policies",
    metadata,
    _user(),
    Column("agent_key", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("status", Text, nullable=False),
    Column("feature_version", SmallInteger, nullable=False),
    Column("weights", LargeBinary, nullable=False, comment="safetensors"),
    Column("checksum", LargeBinary, nullable=False, comment="sha256 of the weights"),
    Column("blend", REAL, nullable=False, comment="weight of the learned part, n / (n + n0)"),
    Column("decisions", Integer, nullable=False, comment="rewarded decisions it was trained on"),
    Column("metrics", JSONB, nullable=False, comment="losses, calibration, the learning curve"),
    Column("verdict", JSONB, comment="of the gate, with every number and reason"),
    Column("prior_version", Integer, comment="the shared prior that it was shrunk to"),
    Column("contributors", ARRAY(Text), comment="of a shared prior: sha256 of each user whose numbers it saw"),
    Column("promoted_at", DateTime(timezone=True)),
    Column("retired_at", DateTime(timezone=True)),
    _created(),
    PrimaryKeyConstraint("user_sub", "agent_key", "version"),
    _one_of("status", PolicyStatus),
    CheckConstraint("blend >= 0 AND blend <= 1", name="blend"),
    CheckConstraint("(user_sub = '') = (contributors IS NOT NULL)", name="contributors"),
    Index(
        "policies_live_idx",
        "user_sub",
        "agent_key",
        "status",
        unique=True,
        postgresql_where=text("status IN ('candidate', 'serving')"),
    ),
)

decision_slots = Table(
    "decision_slots",
    metadata,
    _user(),
    Column("decision_id", Uuid, nullable=False),
    Column("place", SmallInteger, nullable=False, comment="1-based"),
    Column("case_id", Uuid, nullable=False, comment="no foreign key: the log outlives a pruned case"),
    Column("propensity", REAL, nullable=False),
    Column("used", Boolean, comment="whether the backend said that it used the case; null: it did not say"),
    Column(
        "agreed",
        REAL,
        comment="0 to 1: how well the plan of the run that was shown it agrees with the case's; null: not known",
    ),
    PrimaryKeyConstraint("user_sub", "decision_id", "place"),
    ForeignKeyConstraint(["user_sub", "decision_id"], ["decisions.user_sub", "decisions.id"], ondelete="CASCADE"),
    CheckConstraint("propensity > 0 AND propensity <= 1", name="propensity"),
    Index(None, "user_sub", "case_id"),
)

cases = Table(
    "cases",
    metadata,
    _user(),
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
    Column("attempts", SmallInteger, nullable=False, server_default=text("0")),
    Column("available_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("lease_token", Uuid),
    Column("last_error", Text),
    Column("pruned_at", DateTime(timezone=True)),
    _created(),
    PrimaryKeyConstraint("user_sub", "id"),
    UniqueConstraint("user_sub", "idempotency_key"),
    ForeignKeyConstraint(["user_sub", "agent_key"], ["profiles.user_sub", "profiles.agent_key"]),
    ForeignKeyConstraint(["user_sub", "key_id"], ["user_keys.user_sub", "user_keys.key_id"]),
    ForeignKeyConstraint(
        ["user_sub", "retrieval_id"],
        ["decisions.user_sub", "decisions.id"],
        ondelete="SET NULL (retrieval_id)",
    ),
    ForeignKeyConstraint(
        ["user_sub", "session_id"], ["sessions.user_sub", "sessions.id"], ondelete="SET NULL (session_id)"
    ),
    _one_of("status", CaseStatus),
    _one_of("kind", CaseKind),
    _one_of("outcome", RunOutcome),
    _unit_interval("reward"),
    Index("cases_bank_idx", "user_sub", "agent_key", "status", "created_at", "id"),
    Index("cases_queue_idx", "user_sub", "available_at", postgresql_where=text("status = 'pending'")),
    Index("cases_search_vector_idx", "search_vector", postgresql_using="gin"),
    Index("cases_retrieval_idx", "user_sub", "retrieval_id", postgresql_where=text("retrieval_id IS NOT NULL")),
    Index("cases_session_idx", "user_sub", "session_id", postgresql_where=text("session_id IS NOT NULL")),
)

runs = Table(
    "runs",
    metadata,
    _user(),
    Column("id", Uuid, nullable=False, comment="as the backend named it"),
    Column("agent_key", Text, nullable=False),
    Column("status", Text, nullable=False, server_default=text("'under_way'")),
    Column("key_id", Uuid, nullable=False),
    Column("words", LargeBinary, nullable=False, comment="sealed: task"),
    Column("retrieval_id", Uuid, comment="that it began with; looked up when it ends, and so no foreign key"),
    Column("step_count", Integer, nullable=False, server_default=text("0")),
    Column("step_bytes", Integer, nullable=False, server_default=text("0"), comment="of all its steps as JSON"),
    Column("last_step_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("ended_at", DateTime(timezone=True)),
    Column("case_id", Uuid, comment="the case that it became; null: none yet, or one that is gone"),
    _created(),
    PrimaryKeyConstraint("user_sub", "id"),
    ForeignKeyConstraint(["user_sub", "agent_key"], ["profiles.user_sub", "profiles.agent_key"]),
    ForeignKeyConstraint(["user_sub", "key_id"], ["user_keys.user_sub", "user_keys.key_id"]),
    ForeignKeyConstraint(["user_sub", "case_id"], ["cases.user_sub", "cases.id"], ondelete="SET NULL (case_id)"),
    _one_of("status", RunStatus),
    CheckConstraint("(status = 'under_way') = (ended_at IS NULL)", name="ended_at"),
    Index("runs_status_idx", "user_sub", "agent_key", "status", "last_step_at"),
    Index(None, "user_sub", "case_id"),
    comment="runs whose steps are told while they are under way",
)

run_steps = Table(
    "run_steps",
    metadata,
    _user(),
    Column("run_id", Uuid, nullable=False),
    Column("number", Integer, nullable=False, comment="1-based, as the backend counts"),
    Column("payload", LargeBinary, nullable=False, comment="sealed: the tool trace"),
    _created(),
    PrimaryKeyConstraint("user_sub", "run_id", "number"),
    ForeignKeyConstraint(["user_sub", "run_id"], ["runs.user_sub", "runs.id"], ondelete="CASCADE"),
    CheckConstraint("number > 0", name="number"),
    comment="the steps of runs under way; those of a run that was retained are in its case",
)

case_embeddings = Table(
    "case_embeddings",
    metadata,
    _user(),
    Column("agent_key", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("case_id", Uuid, nullable=False),
    Column("dimension", Integer, nullable=False),
    Column("embedding", Vector(), nullable=False, comment="real[] where pgvector is missing"),
    Column("approximate", Boolean, nullable=False, server_default=text("false"), comment="in the HNSW index"),
    _created(),
    PrimaryKeyConstraint("user_sub", "agent_key", "model", "case_id"),
    ForeignKeyConstraint(["user_sub", "case_id"], ["cases.user_sub", "cases.id"], ondelete="CASCADE"),
    Index(None, "user_sub", "case_id"),
)

procedures = Table(
    "procedures",
    metadata,
    _user(),
    Column("id", Uuid, nullable=False),
    Column("version", Integer, nullable=False),
    Column("agent_key", Text, nullable=False),
    Column("kind", Text, nullable=False, server_default=text("'script'")),
    Column("origin", Text, nullable=False, server_default=text("'rules'")),
    Column("level", Text, comment="how abstract it is; null of a lesson from a failure"),
    Column("status", Text, nullable=False, server_default=text("'active'")),
    Column("pinned", Boolean, nullable=False, server_default=text("false"), comment="by hand: nothing replaces it"),
    Column("parent_version", Integer, comment="the version that this one revises"),
    Column("case_id", Uuid, comment="the run whose words it is made of; null once that was pruned"),
    Column(
        "record", JSONB, nullable=False, comment="procedure_name, semantic_description, …: the learned-procedure record"
    ),
    Column("task_type", Text, nullable=False, server_default=text("''")),
    Column("trigger", Text, nullable=False, server_default=text("''"), comment="one sentence: when to use it"),
    Column("domain", Text, nullable=False, server_default=text("''")),
    Column("query_kind", Text, comment="what kind of thing its run was asked for; null: older than this column"),
    Column("success_score", REAL, comment="of its run, 0 to 1; null: older than this column"),
    Column("duration_ms", REAL, comment="of all calls of its run together; null: not told"),
    Column("source_case_ids", ARRAY(Uuid), nullable=False, server_default=text("'{}'"), comment="runs merged into it"),
    Column("occurrences", Integer, nullable=False, server_default=text("1")),
    Column("uses", REAL, nullable=False, server_default=text("0")),
    Column("use_reward", REAL, nullable=False, server_default=text("0"), comment="sum over uses"),
    Column("last_used_at", DateTime(timezone=True)),
    Column("search_text", Text, nullable=False, server_default=text("''")),
    Column(
        "search_vector",
        TSVECTOR,
        Computed(f"to_tsvector('{SEARCH_CONFIGURATION}'::regconfig, search_text)", persisted=True),
    ),
    Column("embedding_model", Text),
    Column("embedding", ARRAY(REAL), comment="of the trigger, in the space of embedding_model"),
    _created(),
    PrimaryKeyConstraint("user_sub", "id", "version"),
    ForeignKeyConstraint(["user_sub", "case_id"], ["cases.user_sub", "cases.id"], ondelete="CASCADE"),
    ForeignKeyConstraint(
        ["user_sub", "id", "parent_version"],
        ["procedures.user_sub", "procedures.id", "procedures.version"],
        name="procedures_parent_fkey",
        ondelete="CASCADE",
    ),
    _one_of("kind", ProcedureKind),
    _one_of("origin", ProcedureOrigin),
    _one_of("level", AbstractionLevel),
    _one_of("status", ProcedureStatus),
    _one_of("query_kind", QueryKind),
    Index(None, "user_sub", "case_id"),
    Index(
        "procedures_active_idx",
        "user_sub",
        "agent_key",
        "id",
        unique=True,
        postgresql_where=text("status = 'active'"),
    ),
)

procedure_reviews = Table(
    "procedure_reviews",
    metadata,
    _user(),
    Column("procedure_id", Uuid, nullable=False),
    Column("version", Integer, nullable=False),
    Column("verdict", Text, nullable=False),
    Column("root_cause_right", Boolean, comment="null: not said"),
    Column("steps_complete", Boolean, comment="null: not said"),
    Column("note", Text, nullable=False, server_default=text("''"), comment="the reviewer's words, redacted"),
    Column("actor", Text, nullable=False, comment="who reviewed it"),
    _created(),
    PrimaryKeyConstraint("user_sub", "procedure_id", "version"),
    ForeignKeyConstraint(
        ["user_sub", "procedure_id", "version"],
        ["procedures.user_sub", "procedures.id", "procedures.version"],
        ondelete="CASCADE",
    ),
    _one_of("verdict", ReviewVerdict),
    comment="what a person found a version of a procedure to be; the newest review of each",
)

case_tools = Table(
    "case_tools",
    metadata,
    _user(),
    Column("case_id", Uuid, nullable=False),
    Column("tool", Text, nullable=False),
    Column("agent_key", Text, nullable=False),
    Column("calls", Integer, nullable=False),
    Column("errors", Integer, nullable=False),
    Column("duration_ms", REAL, comment="of all calls together; null: not told"),
    Column("forms", ARRAY(Text), nullable=False, comment="the arguments of calls that worked, values as placeholders"),
    Column("failures", JSONB, nullable=False, comment="[{cause, fix}], fix null: never put right"),
    _created(),
    PrimaryKeyConstraint("user_sub", "case_id", "tool"),
    ForeignKeyConstraint(["user_sub", "case_id"], ["cases.user_sub", "cases.id"], ondelete="CASCADE"),
    Index(None, "user_sub", "agent_key", "tool"),
)

llm_usage = Table(
    "llm_usage",
    metadata,
    _user(),
    Column("agent_key", Text, nullable=False),
    Column("day", Date, nullable=False, comment="UTC"),
    Column("purpose", Text, nullable=False),
    Column("calls", Integer, nullable=False),
    Column("failures", Integer, nullable=False, comment="calls without a usable answer"),
    Column("prompt_tokens", BigInteger, nullable=False),
    Column("completion_tokens", BigInteger, nullable=False),
    _created(),
    PrimaryKeyConstraint("user_sub", "agent_key", "day", "purpose"),
    _one_of("purpose", LlmPurpose),
)

rewards = Table(
    "rewards",
    metadata,
    _user(),
    Column("id", Uuid, nullable=False),
    Column("case_id", Uuid),
    Column("decision_id", Uuid),
    Column("reward", REAL, nullable=False),
    Column("source", Text, nullable=False),
    Column("actor", Text, nullable=False),
    Column(
        "of_run",
        Boolean,
        nullable=False,
        server_default=text("false"),
        comment="of a retrieval's: it was given for one of its runs, which was named",
    ),
    _created(),
    PrimaryKeyConstraint("user_sub", "id"),
    ForeignKeyConstraint(["user_sub", "case_id"], ["cases.user_sub", "cases.id"], ondelete="CASCADE"),
    ForeignKeyConstraint(["user_sub", "decision_id"], ["decisions.user_sub", "decisions.id"], ondelete="CASCADE"),
    _unit_interval("reward"),
    _one_of("source", RewardSource),
    CheckConstraint("num_nonnulls(case_id, decision_id) = 1", name="one_subject"),
    Index(None, "user_sub", "case_id"),
    Index(None, "user_sub", "decision_id"),
)

audit = Table(
    "audit",
    metadata,
    _user(),
    Column("id", Uuid, nullable=False),
    Column("agent_key", Text),
    Column("actor", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("subject_id", Uuid),
    Column("payload", JSONB, nullable=False),
    _created(),
    Column("mac", LargeBinary, comment="HMAC under the audit key; null: from before there was one"),
    PrimaryKeyConstraint("user_sub", "id"),
)

audit_links = Table(
    "audit_links",
    metadata,
    _user(),
    Column("seq", BigInteger, nullable=False, comment="1-based, without gaps"),
    Column("entry_id", Uuid, nullable=False, comment="no foreign key: a link outlives an entry that somebody deletes"),
    Column("hash", LargeBinary, nullable=False, comment="sha256 of the link before, the number and the entry"),
    _created(),
    PrimaryKeyConstraint("user_sub", "seq"),
    UniqueConstraint("user_sub", "entry_id"),
    comment="the chain of a user's audit entries, in the order of their commits; written by a trigger alone",
)

audit_heads = Table(
    "audit_heads",
    metadata,
    _user(),
    Column("seq", BigInteger, nullable=False, comment="of the last link"),
    Column("hash", LargeBinary, nullable=False, comment="of the last link"),
    Column("pruned_seq", BigInteger, nullable=False, server_default=text("0"), comment="up to here entries are gone"),
    Column("pruned_hash", LargeBinary, comment="of the last link that is gone"),
    Column("sealed_seq", BigInteger, nullable=False, server_default=text("0"), comment="up to here the seal goes"),
    Column("seal", LargeBinary, comment="HMAC of sealed_seq, its hash and what was pruned"),
    _created(),
    PrimaryKeyConstraint("user_sub"),
    comment="where each user's chain ends",
)

rate_limits = Table(
    "rate_limits",
    metadata,
    _user(),
    Column("bucket", LargeBinary, nullable=False, comment="digest of what is limited: user, agent or session"),
    Column("granted", Integer, nullable=False, comment="tokens that the last take got"),
    Column("full_at", DateTime(timezone=True), nullable=False, comment="when the bucket will be full"),
    _created(),
    PrimaryKeyConstraint("user_sub", "bucket"),
    prefixes=["UNLOGGED"],
    comment="how much of their limits users have used; empty after a crash, when everybody begins anew",
)

erasures = Table(
    "erasures",
    metadata,
    Column("user_sub", Text, nullable=False, comment="sha256 of the erased user's name, in hex"),
    Column("erased_at", DateTime(timezone=True), nullable=False),
    Column("receipt", JSONB, nullable=False, comment="what was erased, place by place, signed; it holds no name"),
    PrimaryKeyConstraint("user_sub", "erased_at"),
)

erasure_links = Table(
    "erasure_links",
    metadata,
    Column("seq", BigInteger, nullable=False, autoincrement=False, comment="1-based, without gaps"),
    Column("user_sha256", Text, nullable=False),
    Column("erased_at", DateTime(timezone=True), nullable=False),
    Column("hash", LargeBinary, nullable=False, comment="sha256 of the link before, the number and the tombstone"),
    PrimaryKeyConstraint("seq"),
    comment="the chain of all tombstones; written by a trigger alone",
)

erasure_heads = Table(
    "erasure_heads",
    metadata,
    Column("chain", Text, nullable=False, comment="erasures"),
    Column("seq", BigInteger, nullable=False, comment="of the last link"),
    Column("hash", LargeBinary, nullable=False, comment="of the last link"),
    Column("sealed_seq", BigInteger, nullable=False, server_default=text("0"), comment="up to here the seal goes"),
    Column("seal", LargeBinary, comment="HMAC of sealed_seq and its hash"),
    PrimaryKeyConstraint("chain"),
    comment="where the chain of the tombstones ends: one row",
)

installation_keys = Table(
    "installation_keys",
    metadata,
    Column("name", Text, nullable=False),
    Column("wrapped_key", LargeBinary, nullable=False, comment="by the master key, bound to name and created_at"),
    Column("created_at", DateTime(timezone=True), nullable=False),
    PrimaryKeyConstraint("name"),
    comment="keys of the whole installation, which outlive a change of the master key",
)

token_revocations = Table(
    "token_revocations",
    metadata,
    Column("number", BigInteger, Identity(always=True), nullable=False),
    Column("jti_sha256", LargeBinary, comment="of the one token meant; null: all of the subject's"),
    Column("subject_sha256", LargeBinary, comment="whose tokens"),
    Column("issued_before", DateTime(timezone=True), comment="of the subject's tokens, those issued up to here"),
    Column("revoked_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("expires_at", DateTime(timezone=True), comment="when the token ends by itself; null: not known"),
    Column("why", Text, nullable=False),
    PrimaryKeyConstraint("number"),
    CheckConstraint("num_nonnulls(jti_sha256, issued_before) = 1", name="what"),
    comment="tokens that are refused although they have not expired; a token itself stands nowhere",
)

readmissions = Table(
    "readmissions",
    metadata,
    Column("number", BigInteger, Identity(always=True), nullable=False),
    Column("user_sha256", LargeBinary, nullable=False),
    Column("actor_sha256", LargeBinary, nullable=False, comment="whose tokens count as issued then for this user"),
    Column("admitted_at", DateTime(timezone=True), nullable=False, server_default=func.clock_timestamp()),
    PrimaryKeyConstraint("number"),
    comment="services that began again for an erased user, by an explicit call",
)

jobs = Table(
    "jobs",
    metadata,
    Column("name", Text, nullable=False),
    Column("last_started", DateTime(timezone=True)),
    Column("last_succeeded", DateTime(timezone=True)),
    Column("failures", Integer, nullable=False, server_default=text("0"), comment="since the last success"),
    Column("last_error", Text, comment="its type, never its message; null after a success"),
    _created(),
    PrimaryKeyConstraint("name"),
    comment="what the service does by the clock; no user_sub, for nothing of any user may stand here",
)
"""When each background job last ran: for the worker's role alone, and neither exported nor erased with a user."""

master_keys = Table(
    "master_keys",
    metadata,
    Column("fingerprint", Text, nullable=False, comment="of the key, which stands nowhere in the database"),
    Column("status", Text, nullable=False),
    Column("began_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column(
        "replaces",
        ARRAY(Text),
        nullable=False,
        server_default=text("'{}'"),
        comment="fingerprints of the keys that the rotation to this one takes out of use",
    ),
    Column("rewrapped", Integer, nullable=False, server_default=text("0"), comment="users' keys so far"),
    Column("finished_at", DateTime(timezone=True), comment="of the rotation to this key"),
    PrimaryKeyConstraint("fingerprint"),
    _one_of("status", MasterKeyStatus),
    Index("master_keys_current_idx", "status", unique=True, postgresql_where=text("status = 'current'")),
    comment="by which keys the users' keys are wrapped; no user_sub, for nothing of any user may stand here",
)
"""By which master keys the users' keys are wrapped: written by the worker's role alone, and not erased with a user."""

USER_TABLES = (
    rewards,
    procedure_reviews,
    procedures,
    case_tools,
    llm_usage,
    case_embeddings,
    findings,
    run_steps,
    runs,
    memories,
    knowledge,
    facts,
    cases,
    turns,
    session_summaries,
    sessions,
    decision_slots,
    decisions,
    policies,
    contributions,
    audit_heads,
    audit_links,
    audit,
    rate_limits,
    user_keys,
    profiles,
)
"""The tables that hold a user's data, in the order in which they can be emptied."""
