"""The tables of decisions: each logged retrieval, the places of its slate, and its rewards."""

from sqlalchemy import REAL, BigInteger, Boolean, Integer, LargeBinary, SmallInteger, Text, Uuid
from sqlalchemy.dialects.postgresql import ARRAY

from retrieval.tables.columns import check, index, needed, one_of, optional, refers, unit_interval, user_table
from retrieval.tables.kinds import Arm, RewardSource

ADVICE = "advice"
"""Mode of a decision about advice at a failed call: it has no candidates, and does not count as a slate."""

decisions = user_table(
    "decisions",
    ("id",),
    needed("id", Uuid),
    needed("agent_key", Text),
    needed("query", Text),
    needed("mode", Text),
    needed("degraded", ARRAY(Text)),
    needed("policy_version", Text),
    needed("feature_version", SmallInteger),
    needed("seed", BigInteger),
    needed("arm", Text),
    needed("k", SmallInteger),
    optional("min_similarity", REAL),
    needed("slate_propensity", REAL, "of the whole slate, over every arm and draw"),
    needed("candidate_ids", ARRAY(Uuid)),
    needed("candidate_groups", ARRAY(SmallInteger), "candidates of one group say the same"),
    needed("candidate_sources", ARRAY(SmallInteger), "one number for each source"),
    needed("features", LargeBinary, "float16, candidates x features of feature_version"),
    needed("scores", ARRAY(REAL), "what the arm ordered the candidates by"),
    optional("rewritten", Text, "what was searched for in place of the query; null: the query itself"),
    optional("told", LargeBinary, "sealed: what memory_context said; null: it was not kept, or is forgotten"),
    optional("words", LargeBinary, "sealed: query, rewritten; null: they stand in their columns"),
    optional("query_group", BigInteger, "of sealed words: the same for equal queries of the user"),
    needed("procedure_ids", ARRAY(Uuid), "told with the slate", default="'{}'"),
    needed("procedure_versions", ARRAY(Integer), "of those", default="'{}'"),
    optional("used_procedure_ids", ARRAY(Uuid), "of those, what the backend said it used; null: it did not say"),
    needed("tokens", Integer),
    optional("reward", REAL),
    optional("reward_source", Text),
    unit_interval("reward"),
    one_of("arm", Arm),
    check("slate_propensity", "slate_propensity > 0 AND slate_propensity <= 1"),
    index("decisions_rewarded_idx", "agent_key", "id", where="reward IS NOT NULL"),
)

decision_slots = user_table(
    "decision_slots",
    ("decision_id", "place"),
    needed("decision_id", Uuid),
    needed("place", SmallInteger, "1-based"),
    needed("case_id", Uuid, "no foreign key: the log outlives a pruned case"),
    needed("propensity", REAL),
    optional("used", Boolean, "whether the backend said that it used the case; null: it did not say"),
    optional(
        "agreed", REAL, "0 to 1: how well the plan of the run that was shown it agrees with the case's; null: not known"
    ),
    refers("decisions", decision_id="id", cascade=True),
    check("propensity", "propensity > 0 AND propensity <= 1"),
    index(None, "case_id"),
    dated=False,
)

rewards = user_table(
    "rewards",
    ("id",),
    needed("id", Uuid),
    optional("case_id", Uuid),
    optional("decision_id", Uuid),
    needed("reward", REAL),
    needed("source", Text),
    needed("actor", Text),
    needed("of_run", Boolean, "of a retrieval's: it was given for one of its runs, which was named", default="false"),
    refers("cases", case_id="id", cascade=True),
    refers("decisions", decision_id="id", cascade=True),
    unit_interval("reward"),
    one_of("source", RewardSource),
    check("one_subject", "num_nonnulls(case_id, decision_id) = 1"),
    index(None, "case_id"),
    index(None, "decision_id"),
)
