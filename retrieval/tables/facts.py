"""The table of facts: what a user said about themselves, with the time for which it holds.

The text of a fact is sealed; keyed hashes are stored with it, by which the same fact, or one that a newer fact
contradicts, is found.
"""

from sqlalchemy import Date, Integer, LargeBinary, Text, Uuid

from retrieval.tables.columns import TIME, check, index, needed, one_of, optional, refers, user_table
from retrieval.tables.kinds import FactKind, FactOrigin, Speaker

facts = user_table(
    "facts",
    ("id",),
    needed("id", Uuid),
    needed("agent_key", Text),
    needed("kind", Text),
    needed("category", Text, default="'other'"),
    needed("key_id", Uuid),
    needed("words", LargeBinary, "sealed: text, subject, attribute, value, unit"),
    optional("slot", LargeBinary, "keyed hash of what there is one value of at a time; null: of any number"),
    needed("said", LargeBinary, "keyed hash of what it says, whatever the wording"),
    optional("about_from", Date, "first day that it speaks of"),
    optional("about_to", Date, "last day"),
    needed("origin", Text),
    needed("said_by", Text, default="'user'"),
    optional("session_id", Uuid, "where it was first told; null: elsewhere, or it is gone"),
    optional("turn_number", Integer, "in that session"),
    optional("case_id", Uuid, "the run in whose turns it was first told; null: elsewhere, or it is gone"),
    needed("told", Integer, default="1"),
    needed("last_told_at", TIME, default="now()"),
    needed("valid_from", TIME),
    optional("valid_to", TIME, "null: it holds"),
    optional("superseded_by", Uuid, "the newer one that contradicts it"),
    refers("profiles", agent_key="agent_key"),
    refers("user_keys", key_id="key_id"),
    refers("sessions", session_id="id"),
    refers("cases", case_id="id"),
    refers("facts", superseded_by="id"),
    one_of("kind", FactKind),
    one_of("origin", FactOrigin),
    one_of("said_by", Speaker),
    check("valid", "valid_to >= valid_from"),
    check("about", "(about_from IS NULL) = (about_to IS NULL) AND about_from <= about_to"),
    index("facts_said_idx", "agent_key", "said"),
    index("facts_slot_idx", "agent_key", "slot", "valid_from"),
    index("facts_session_idx", "session_id"),
    index("facts_case_idx", "case_id"),
    index("facts_superseded_idx", "superseded_by"),
    comment="what users told of themselves, and when it held",
)
