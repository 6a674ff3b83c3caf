"""The tables of runs under way: each run and its steps, before they become a case."""

from sqlalchemy import Integer, LargeBinary, Text, Uuid

from retrieval.tables.columns import TIME, check, index, needed, one_of, optional, refers, user_table
from retrieval.tables.kinds import RunStatus

runs = user_table(
    "runs",
    ("id",),
    needed("id", Uuid, "as the backend named it"),
    needed("agent_key", Text),
    needed("status", Text, default="'under_way'"),
    needed("key_id", Uuid),
    needed("words", LargeBinary, "sealed: task"),
    optional("retrieval_id", Uuid, "that it began with; looked up when it ends, and so no foreign key"),
    needed("step_count", Integer, default="0"),
    needed("step_bytes", Integer, "of all its steps as JSON", default="0"),
    needed("last_step_at", TIME, default="now()"),
    optional("ended_at", TIME),
    optional("case_id", Uuid, "the case that it became; null: none yet, or one that is gone"),
    refers("profiles", agent_key="agent_key"),
    refers("user_keys", key_id="key_id"),
    refers("cases", case_id="id"),
    one_of("status", RunStatus),
    check("ended_at", "(status = 'under_way') = (ended_at IS NULL)"),
    index("runs_status_idx", "agent_key", "status", "last_step_at"),
    index(None, "case_id"),
    comment="runs whose steps are told while they are under way",
)

run_steps = user_table(
    "run_steps",
    ("run_id", "number"),
    needed("run_id", Uuid),
    needed("number", Integer, "1-based, as the backend counts"),
    needed("payload", LargeBinary, "sealed: the tool trace"),
    refers("runs", run_id="id", cascade=True),
    check("number", "number > 0"),
    comment="the steps of runs under way; those of a run that was retained are in its case",
)
