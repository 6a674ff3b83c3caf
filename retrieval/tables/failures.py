"""The tables of failed calls: the failures of each run with their fixes, and the advice given at a failed call."""

from sqlalchemy import Boolean, Integer, LargeBinary, SmallInteger, Text, Uuid
from sqlalchemy.dialects.postgresql import ARRAY

from retrieval.tables.columns import index, needed, optional, refers, user_table

failures = user_table(
    "failures",
    ("case_id", "place"),
    needed("case_id", Uuid),
    needed("place", SmallInteger, "1-based, among the failures of the run"),
    needed("agent_key", Text),
    needed("tool", Integer, "keyed hash of the name"),
    needed("sign", Integer, "keyed hash of the tool and the error's first line"),
    needed("error", ARRAY(Integer), "keyed hashes of the error's words and codes"),
    needed("call", ARRAY(Integer), "keyed hashes of the call's moves"),
    needed("fix", ARRAY(Integer), "keyed hashes of the fix's parts; empty: nothing worked"),
    optional("fix_id", Integer, "keyed hash of the fix as a whole; null: nothing worked"),
    needed("calls", SmallInteger, "number of calls that failed like this"),
    needed("words", LargeBinary, "sealed: the error and the fix"),
    refers("cases", case_id="id", cascade=True),
    index(None, "agent_key", "created_at"),
    comment="failed calls of runs, and what put them right",
)

advice = user_table(
    "advice",
    ("decision_id",),
    needed("decision_id", Uuid),
    needed("agent_key", Text),
    needed("sign", Integer, "of the failure, see failures"),
    optional("run_id", Uuid, "of the run that asked; null: it did not say"),
    optional("retrieval_id", Uuid, "that the run began with; null: it did not say"),
    optional("session_id", Uuid, "of the session that asked; null: none, or one that is gone"),
    needed("fix_ids", ARRAY(Integer), "told; empty: silence", default="'{}'"),
    optional("request", Integer, "keyed hash of the request; null: logged before requests were"),
    optional("came_back", Boolean, "whether the run failed like this again; null: the run has not ended"),
    refers("decisions", decision_id="id", cascade=True),
    refers("sessions", session_id="id"),
    index(None, "agent_key", "sign"),
    index("advice_run_idx", "run_id", where="run_id IS NOT NULL"),
    index("advice_retrieval_idx", "retrieval_id", where="retrieval_id IS NOT NULL"),
    index("advice_session_idx", "session_id", where="session_id IS NOT NULL"),
    comment="decisions that were taken at a failed call",
)
