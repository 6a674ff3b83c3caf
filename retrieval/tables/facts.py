"""The table of facts: what a user said about themselves, with the time for which it holds.

The text of a fact is sealed; keyed hashes are stored with it, by which the same fact, or one that a newer fact
contradicts, is found.
"""

from sqlalchemy import (
    CheckConstraint,
    Column,
    Date,
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
from retrieval.tables.kinds import FactKind, FactOrigin, Speaker

facts = Table(
    "facts",
    metadata,
    user(),
    Column("id", Uuid, nullable=False),
    Column("agent_key", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("category", Text, nullable=False, server_default=text("'other'")),
    Column("key_id", Uuid, nullable=False),
    Column("words", LargeBinary, nullable=False, comment="sealed: text, subject, attribute, value, unit"),
    Column("slot", LargeBinary, comment="keyed hash of what there is one value of at a time; null: of any number"),
    Column("said", LargeBinary, nullable=False, comment="keyed hash of what it says, whatever the wording"),
    Column("about_from", Date, comment="first day that it speaks of"),
    Column("about_to", Date, comment="last day"),
    Column("origin", Text, nullable=False),
    Column("said_by", Text, nullable=False, server_default=text("'user'")),
    Column("session_id", Uuid, comment="where it was first told; null: elsewhere, or it is gone"),
    Column("turn_number", Integer, comment="in that session"),
    Column("case_id", Uuid, comment="the run in whose turns it was first told; null: elsewhere, or it is gone"),
    Column("told", Integer, nullable=False, server_default=text("1")),
    Column("last_told_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("valid_from", DateTime(timezone=True), nullable=False),
    Column("valid_to", DateTime(timezone=True), comment="null: it holds"),
    Column("superseded_by", Uuid, comment="the newer one that contradicts it"),
    created(),
    PrimaryKeyConstraint("user_sub", "id"),
    ForeignKeyConstraint(["user_sub", "agent_key"], ["profiles.user_sub", "profiles.agent_key"]),
    ForeignKeyConstraint(["user_sub", "key_id"], ["user_keys.user_sub", "user_keys.key_id"]),
    ForeignKeyConstraint(["user_sub", "session_id"], ["sessions.user_sub", "sessions.id"]),
    ForeignKeyConstraint(["user_sub", "case_id"], ["cases.user_sub", "cases.id"]),
    ForeignKeyConstraint(["user_sub", "superseded_by"], ["facts.user_sub", "facts.id"]),
    one_of("kind", FactKind),
    one_of("origin", FactOrigin),
    one_of("said_by", Speaker),
    CheckConstraint("valid_to >= valid_from", name="valid"),
    CheckConstraint("(about_from IS NULL) = (about_to IS NULL) AND about_from <= about_to", name="about"),
    Index("facts_said_idx", "user_sub", "agent_key", "said"),
    Index("facts_slot_idx", "user_sub", "agent_key", "slot", "valid_from"),
    Index("facts_session_idx", "user_sub", "session_id"),
    Index("facts_case_idx", "user_sub", "case_id"),
    Index("facts_superseded_idx", "user_sub", "superseded_by"),
    comment="what users told of themselves, and when it held",
)
