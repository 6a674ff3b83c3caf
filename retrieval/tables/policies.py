"""The table of learned policies: versions, weights, metrics and verdicts."""

from sqlalchemy import (
    REAL,
    CheckConstraint,
    Column,
    DateTime,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    Text,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from retrieval.tables.columns import created, metadata, one_of, user
from retrieval.tables.kinds import (
    PolicyStatus,
)

policies = Table(
    "policies",
    metadata,
    user(),
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
    Column("promoted_at", DateTime(timezone=True)),
    Column("retired_at", DateTime(timezone=True)),
    created(),
    PrimaryKeyConstraint("user_sub", "agent_key", "version"),
    one_of("status", PolicyStatus),
    CheckConstraint("blend >= 0 AND blend <= 1", name="blend"),
    Index(
        "policies_live_idx",
        "user_sub",
        "agent_key",
        "status",
        unique=True,
        postgresql_where=text("status IN ('candidate', 'serving')"),
    ),
)
