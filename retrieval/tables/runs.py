"""The tables of runs under way: each run and its steps, before they become a case."""

from sqlalchemy import (
    CheckConstraint,
    Column,
    DateTime,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
    Uuid,
    func,
    text,
)

from retrieval.tables.columns import created, metadata, one_of, user
from retrieval.tables.kinds import (
    RunStatus,
)

runs = Table(
    "runs",
    metadata,
    user(),
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
    created(),
    PrimaryKeyConstraint("user_sub", "id"),
    ForeignKeyConstraint(["user_sub", "agent_key"], ["profiles.user_sub", "profiles.agent_key"]),
    ForeignKeyConstraint(["user_sub", "key_id"], ["user_keys.user_sub", "user_keys.key_id"]),
    ForeignKeyConstraint(["user_sub", "case_id"], ["cases.user_sub", "cases.id"]),
    one_of("status", RunStatus),
    CheckConstraint("(status = 'under_way') = (ended_at IS NULL)", name="ended_at"),
    Index("runs_status_idx", "user_sub", "agent_key", "status", "last_step_at"),
    Index(None, "user_sub", "case_id"),
    comment="runs whose steps are told while they are under way",
)

run_steps = Table(
    "run_steps",
    metadata,
    user(),
    Column("run_id", Uuid, nullable=False),
    Column("number", Integer, nullable=False, comment="1-based, as the backend counts"),
    Column("payload", LargeBinary, nullable=False, comment="sealed: the tool trace"),
    created(),
    PrimaryKeyConstraint("user_sub", "run_id", "number"),
    ForeignKeyConstraint(["user_sub", "run_id"], ["runs.user_sub", "runs.id"], ondelete="CASCADE"),
    CheckConstraint("number > 0", name="number"),
    comment="the steps of runs under way; those of a run that was retained are in its case",
)
