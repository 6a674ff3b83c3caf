"""The table of findings: what the steps of runs found out, stored so that no agent looks up the same thing twice.

The texts of a step are sealed. The database compares keyed hashes of their words, which reveal no word and are equal
for equal words of one user.
"""

from sqlalchemy import (
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

from retrieval.tables.columns import created, metadata, one_of, user
from retrieval.tables.kinds import FindingKind


def _hashes(name: str, comment: str) -> Column[list[int]]:
    return Column(name, ARRAY(BigInteger), nullable=False, server_default=text("'{}'"), comment=comment)


findings = Table(
    "findings",
    metadata,
    user(),
    Column("run_id", Uuid, nullable=False),
    Column("step", Integer, nullable=False, comment="of the run, whose call found it"),
    Column("part", SmallInteger, nullable=False, comment="0-based place among the findings of the step"),
    Column("agent_key", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("success", Boolean, nullable=False),
    Column("query_hash", BigInteger, nullable=False, comment="keyed: of what was asked, however it was put"),
    _hashes("terms", "keyed: of the words of what was asked, where it was asked in words"),
    Column("path_hash", BigInteger, comment="keyed: of the file that was read"),
    Column("content_hash", BigInteger, comment="keyed: of the hash of what the file said"),
    Column("first_line", Integer, comment="of a part of a file; null: all of it was asked for"),
    Column("last_line", Integer, comment="of what was read of the file"),
    _hashes("place_keys", "keyed: what other places are looked for by; none: it is about any file"),
    _hashes("place_marks", "keyed: by which this place is found"),
    Column("payload", LargeBinary, nullable=False, comment="sealed: tool, query, fact and what was read off"),
    created(),
    PrimaryKeyConstraint("user_sub", "run_id", "step", "part"),
    ForeignKeyConstraint(["user_sub", "run_id"], ["runs.user_sub", "runs.id"], ondelete="CASCADE"),
    one_of("kind", FindingKind),
    CheckConstraint("step > 0 AND part >= 0", name="place"),
    Index("findings_path_idx", "user_sub", "agent_key", "path_hash", postgresql_where=text("path_hash IS NOT NULL")),
    Index("findings_query_idx", "user_sub", "agent_key", "query_hash"),
    comment="what the steps of runs found out",
)
