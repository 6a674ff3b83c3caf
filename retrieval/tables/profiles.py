"""The tables of profiles, one user and one agent each: settings, a language model's daily use, policies and replays.

A policy has its weights, metrics and verdict by version; a replay has the result of ``policy.replay`` on the profile's
own runs.
"""

from sqlalchemy import REAL, BigInteger, Boolean, Date, Double, Integer, LargeBinary, SmallInteger, Text
from sqlalchemy.dialects.postgresql import JSONB

from retrieval.tables.columns import TIME, check, index, needed, one_of, optional, refers, unit_interval, user_table
from retrieval.tables.kinds import Abstraction, AnalystChoice, LlmPurpose, PolicyStatus, Rewrite, SummaryChoice

profiles = user_table(
    "profiles",
    ("agent_key",),
    needed("agent_key", Text),
    needed("enabled", Boolean, "whether memory is read", default="true"),
    needed("writing", Boolean, "whether memory is written", default="true"),
    needed("window_size", Integer, default="200"),
    optional("ttl_days", Integer),
    needed("k", SmallInteger, default="4"),
    needed("full_text_weight", REAL, default="1"),
    needed("semantic_weight", REAL, default="1"),
    needed("rrf_k", REAL, default="50"),
    needed("learning", Boolean, "whether a policy is trained", default="true"),
    needed("explore", REAL, "share of slates with a drawn place", default="0"),
    needed("canary", REAL, "share of a policy on trial", default="0"),
    optional("embedding_model", Text, "the one vector space that searches of this profile use"),
    needed("approximate", Boolean, "every vector of the profile is in the HNSW index", default="false"),
    needed("rewrite", Text, "who turns a query into a search", default="'off'"),
    needed("analyst", Text, "who explains failures", default="'rules'"),
    needed("abstraction", Text, "off, or the level", default="'hybrid'"),
    needed("least_success", REAL, "of a run that makes a procedure", default="0.7"),
    needed("procedures", SmallInteger, "most in one answer", default="2"),
    optional("procedure_similarity", REAL, "least of trigger and query; null: the embedding model's own"),
    optional("llm_tokens_per_day", Integer, "null: as many as the service allows"),
    needed("tool_kinds", JSONB, "of tools whose names do not tell", default="'{}'"),
    optional("session_ttl_days", Integer, "since its last turn; null: a session stays"),
    needed("session_summary", Text, "who tells of older turns", default="'rules'"),
    needed("session_share", REAL, "of a context's tokens, at most", default="0.4"),
    needed("facts_share", REAL, "likewise", default="0.2"),
    needed("procedures_share", REAL, "likewise", default="0.33333334"),
    check("window_size", "window_size > 0"),
    check("k", "k BETWEEN 1 AND 50"),
    unit_interval("explore"),
    check("canary", "canary >= 0 AND canary <= 0.9"),
    one_of("rewrite", Rewrite),
    one_of("analyst", AnalystChoice),
    one_of("abstraction", Abstraction),
    one_of("session_summary", SummaryChoice),
    unit_interval("least_success"),
    check("procedures", "procedures BETWEEN 0 AND 10"),
    unit_interval("session_share"),
    unit_interval("facts_share"),
    unit_interval("procedures_share"),
)

llm_usage = user_table(
    "llm_usage",
    ("agent_key", "day", "purpose"),
    needed("agent_key", Text),
    needed("day", Date, "UTC"),
    needed("purpose", Text),
    needed("calls", Integer),
    needed("failures", Integer, "calls without a usable answer"),
    needed("prompt_tokens", BigInteger),
    needed("completion_tokens", BigInteger),
    one_of("purpose", LlmPurpose),
)

replays = user_table(
    "replays",
    ("agent_key",),
    needed("agent_key", Text),
    needed("runs", Integer, "newest cases that were replayed"),
    needed("questions", Integer, "runs that went well and that an earlier one answers"),
    needed("serves", Text, "the order that ranks from now on"),
    needed("tallies", JSONB, "by order: first place right, nDCG@4, faded charges"),
    needed("fit", LargeBinary, "safetensors: weights of terms, channels and moves"),
    optional("unlike", Double, "mean similarity of the vectors of unlike cases; null: too few are unlike"),
    needed("newest", TIME, "creation of the newest case that was replayed"),
    refers("profiles", agent_key="agent_key"),
    comment="what a profile's own runs say about the order that ranks them",
)

policies = user_table(
    "policies",
    ("agent_key", "version"),
    needed("agent_key", Text),
    needed("version", Integer),
    needed("status", Text),
    needed("feature_version", SmallInteger),
    needed("weights", LargeBinary, "safetensors"),
    needed("checksum", LargeBinary, "sha256 of the weights"),
    needed("blend", REAL, "weight of the learned part, n / (n + n0)"),
    needed("decisions", Integer, "rewarded decisions it was trained on"),
    needed("metrics", JSONB, "losses, calibration, the learning curve"),
    optional("verdict", JSONB, "of the gate, with every number and reason"),
    optional("promoted_at", TIME),
    optional("retired_at", TIME),
    one_of("status", PolicyStatus),
    check("blend", "blend >= 0 AND blend <= 1"),
    index("policies_live_idx", "agent_key", "status", where="status IN ('candidate', 'serving')", unique=True),
)
