"""The table of learned policies: versions, weights, metrics and verdicts."""

from sqlalchemy import REAL, Integer, LargeBinary, SmallInteger, Text
from sqlalchemy.dialects.postgresql import JSONB

from retrieval.tables.columns import TIME, check, index, needed, one_of, optional, user_table
from retrieval.tables.kinds import PolicyStatus

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
