"""The table of findings: what the steps of runs found out, stored so that no agent looks up the same thing twice.

The texts of a step are sealed. The database compares keyed hashes of their words, which reveal no word and are equal
for equal words of one user.
"""

from sqlalchemy import BigInteger, Boolean, Column, Integer, LargeBinary, SmallInteger, Text, Uuid, text
from sqlalchemy.dialects.postgresql import ARRAY

from retrieval.tables.columns import check, index, needed, one_of, optional, refers, user_table
from retrieval.tables.kinds import FindingKind


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
