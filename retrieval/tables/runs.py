"""The tables of runs under way: runs and their steps, findings of the steps, and checkpoints of a backend's graphs.

Findings are stored so that no agent looks up the same thing twice; checkpoints are kept and not read: a row for the
state, and one for each write that is pending on it. Texts and names are sealed; the database compares keyed hashes of
them, which are equal for equal words of one user.
"""

from sqlalchemy import BigInteger, Boolean, Column, Integer, LargeBinary, SmallInteger, Text, Uuid, text
from sqlalchemy.dialects.postgresql import ARRAY

from retrieval.tables.columns import TIME, check, index, needed, one_of, optional, refers, user_table
from retrieval.tables.kinds import FindingKind, RunStatus

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

checkpoints = user_table(
    "checkpoints",
    ("id",),
    needed("id", Uuid),
    needed("agent_key", Text),
    needed("key_id", Uuid),
    needed("thread", LargeBinary, "keyed hash of the thread's id"),
    needed("namespace", LargeBinary, "keyed hash of the namespace"),
    needed("checkpoint_id", Uuid, "as the backend named it; rises with time"),
    needed("task", LargeBinary, "keyed hash of a pending write's task; empty: the state"),
    needed("place", Integer, "of a write among those of its task"),
    needed("words", LargeBinary, "sealed: thread, namespace, task, value"),
    needed("size", Integer, "bytes of the words as JSON; 0: stored before sizes were", default="0"),
    refers("profiles", agent_key="agent_key"),
    refers("user_keys", key_id="key_id"),
    index("checkpoints_part_idx", "agent_key", "thread", "namespace", "checkpoint_id", "task", "place", unique=True),
    comment="states of a backend's graphs, and the writes pending on them",
)


def _hashes(name: str, comment: str) -> Column[list[int]]:
    return Column(name, ARRAY(BigInteger), nullable=False, server_default=text("'{}'"), comment=comment)


findings = user_table(
    "findings",
    ("run_id", "step", "part"),
    needed("run_id", Uuid),
    needed("step", Integer, "of the run, whose call found it"),
    needed("part", SmallInteger, "0-based place among the findings of the step"),
    needed("agent_key", Text),
    needed("kind", Text),
    needed("success", Boolean),
    needed("query_hash", BigInteger, "keyed: of what was asked, however it was put"),
    _hashes("terms", "keyed: of the words of what was asked, where it was asked in words"),
    optional("path_hash", BigInteger, "keyed: of the file that was read"),
    optional("content_hash", BigInteger, "keyed: of the hash of what the file said"),
    optional("first_line", Integer, "of a part of a file; null: all of it was asked for"),
    optional("last_line", Integer, "of what was read of the file"),
    _hashes("place_keys", "keyed: what other places are looked for by; none: it is about any file"),
    _hashes("place_marks", "keyed: by which this place is found"),
    needed("payload", LargeBinary, "sealed: tool, query, fact and what was read off"),
    refers("runs", run_id="id", cascade=True),
    one_of("kind", FindingKind),
    check("place", "step > 0 AND part >= 0"),
    index("findings_path_idx", "agent_key", "path_hash", where="path_hash IS NOT NULL"),
    index("findings_query_idx", "agent_key", "query_hash"),
    comment="what the steps of runs found out",
)
