"""The tables of failed calls: the failures of each run with their fixes, and the advice given at a failed call."""

from sqlalchemy import (
    Boolean,
    Column,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    Text,
    Uuid,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY

from retrieval.tables.columns import created, metadata, user

failures = Table(
    "failures",
    metadata,
    user(),
    Column("case_id", Uuid, nullable=False),
    Column("place", SmallInteger, nullable=False, comment="1-based, among the failures of the run"),
    Column("agent_key", Text, nullable=False),
    Column("tool", Integer, nullable=False, comment="keyed hash of the name"),
    Column("sign", Integer, nullable=False, comment="keyed hash of the tool and the error's first line"),
    Column("error", ARRAY(Integer), nullable=False, comment="keyed hashes of the error's words and codes"),
    Column("call", ARRAY(Integer), nullable=False, comment="keyed hashes of the call's moves"),
    Column("fix", ARRAY(Integer), nullable=False, comment="keyed hashes of the fix's parts; empty: nothing worked"),
    Column("fix_id", Integer, comment="keyed hash of the fix as a whole; null: nothing worked"),
    Column("calls", SmallInteger, nullable=False, comment="number of calls that failed like this"),
    Column("words", LargeBinary, nullable=False, comment="sealed: the error and the fix"),
    created(),
    PrimaryKeyConstraint("user_sub", "case_id", "place"),
    ForeignKeyConstraint(["user_sub", "case_id"], ["cases.user_sub", "cases.id"], ondelete="CASCADE"),
    Index(None, "user_sub", "agent_key", "created_at"),
    comment="failed calls of runs, and what put them right",
)

advice = Table(
    "advice",
    metadata,
    user(),
    Column("decision_id", Uuid, nullable=False),
    Column("agent_key", Text, nullable=False),
    Column("sign", Integer, nullable=False, comment="of the failure, see failures"),
    Column("run_id", Uuid, comment="of the run that asked; null: it did not say"),
    Column("retrieval_id", Uuid, comment="that the run began with; null: it did not say"),
    Column("session_id", Uuid, comment="of the session that asked; null: none, or one that is gone"),
    Column("fix_ids", ARRAY(Integer), nullable=False, server_default=text("'{}'"), comment="told; empty: silence"),
    Column("came_back", Boolean, comment="whether the run failed like this again; null: the run has not ended"),
    created(),
    PrimaryKeyConstraint("user_sub", "decision_id"),
    ForeignKeyConstraint(["user_sub", "decision_id"], ["decisions.user_sub", "decisions.id"], ondelete="CASCADE"),
    ForeignKeyConstraint(["user_sub", "session_id"], ["sessions.user_sub", "sessions.id"]),
    Index(None, "user_sub", "agent_key", "sign"),
    Index("advice_run_idx", "user_sub", "run_id", postgresql_where=text("run_id IS NOT NULL")),
    Index("advice_retrieval_idx", "user_sub", "retrieval_id", postgresql_where=text("retrieval_id IS NOT NULL")),
    Index("advice_session_idx", "user_sub", "session_id", postgresql_where=text("session_id IS NOT NULL")),
    comment="decisions that were taken at a failed call",
)
