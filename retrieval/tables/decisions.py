"""The tables of decisions: each logged retrieval, the places of its slate, and its rewards."""

from sqlalchemy import (
    REAL,
    BigInteger,
    Boolean,
    CheckConstraint,
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

from retrieval.tables.columns import created, metadata, one_of, unit_interval, user
from retrieval.tables.kinds import (
    Arm,
    RewardSource,
)

ADVICE = "advice"
"""Mode of a decision about advice at a failed call: it has no candidates, and does not count as a slate."""

decisions = Table(
    "decisions",
    metadata,
    user(),
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
    created(),
    PrimaryKeyConstraint("user_sub", "id"),
    unit_interval("reward"),
    one_of("arm", Arm),
    CheckConstraint("slate_propensity > 0 AND slate_propensity <= 1", name="slate_propensity"),
    Index("decisions_rewarded_idx", "user_sub", "agent_key", "id", postgresql_where=text("reward IS NOT NULL")),
)

decision_slots = Table(
    "decision_slots",
    metadata,
    user(),
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

rewards = Table(
    "rewards",
    metadata,
    user(),
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
    created(),
    PrimaryKeyConstraint("user_sub", "id"),
    ForeignKeyConstraint(["user_sub", "case_id"], ["cases.user_sub", "cases.id"], ondelete="CASCADE"),
    ForeignKeyConstraint(["user_sub", "decision_id"], ["decisions.user_sub", "decisions.id"], ondelete="CASCADE"),
    unit_interval("reward"),
    one_of("source", RewardSource),
    CheckConstraint("num_nonnulls(case_id, decision_id) = 1", name="one_subject"),
    Index(None, "user_sub", "case_id"),
    Index(None, "user_sub", "decision_id"),
)
