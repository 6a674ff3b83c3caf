"""The tables of profiles: one user and one agent, with the settings and the language model's daily use."""

from sqlalchemy import (
    REAL,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Date,
    Integer,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    Text,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from retrieval.tables.columns import created, metadata, one_of, unit_interval, user
from retrieval.tables.kinds import (
    Abstraction,
    AnalystChoice,
    LlmPurpose,
    Rewrite,
    SummaryChoice,
)

profiles = Table(
    "profiles",
    metadata,
    user(),
    Column("agent_key", Text, nullable=False),
    Column("enabled", Boolean, nullable=False, server_default=text("true"), comment="whether memory is read"),
    Column("writing", Boolean, nullable=False, server_default=text("true"), comment="whether memory is written"),
    Column("window_size", Integer, nullable=False, server_default=text("200")),
    Column("ttl_days", Integer),
    Column("k", SmallInteger, nullable=False, server_default=text("4")),
    Column("full_text_weight", REAL, nullable=False, server_default=text("1")),
    Column("semantic_weight", REAL, nullable=False, server_default=text("1")),
    Column("rrf_k", REAL, nullable=False, server_default=text("50")),
    Column("learning", Boolean, nullable=False, server_default=text("true"), comment="whether a policy is trained"),
    Column("explore", REAL, nullable=False, server_default=text("0"), comment="share of slates with a drawn place"),
    Column("canary", REAL, nullable=False, server_default=text("0"), comment="share of a policy on trial"),
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
    created(),
    PrimaryKeyConstraint("user_sub", "agent_key"),
    CheckConstraint("window_size > 0", name="window_size"),
    CheckConstraint("k BETWEEN 1 AND 50", name="k"),
    unit_interval("explore"),
    CheckConstraint("canary >= 0 AND canary <= 0.9", name="canary"),
    one_of("rewrite", Rewrite),
    one_of("analyst", AnalystChoice),
    one_of("abstraction", Abstraction),
    one_of("session_summary", SummaryChoice),
    unit_interval("least_success"),
    CheckConstraint("procedures BETWEEN 0 AND 10", name="procedures"),
    unit_interval("session_share"),
    unit_interval("facts_share"),
    unit_interval("procedures_share"),
)

llm_usage = Table(
    "llm_usage",
    metadata,
    user(),
    Column("agent_key", Text, nullable=False),
    Column("day", Date, nullable=False, comment="UTC"),
    Column("purpose", Text, nullable=False),
    Column("calls", Integer, nullable=False),
    Column("failures", Integer, nullable=False, comment="calls without a usable answer"),
    Column("prompt_tokens", BigInteger, nullable=False),
    Column("completion_tokens", BigInteger, nullable=False),
    created(),
    PrimaryKeyConstraint("user_sub", "agent_key", "day", "purpose"),
    one_of("purpose", LlmPurpose),
)
