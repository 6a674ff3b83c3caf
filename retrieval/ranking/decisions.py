"""Writes the log of decisions, the only rows that retrieval writes: one statement inserts a decision with its slate."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from sqlalchemy import (
    ARRAY,
    REAL,
    Boolean,
    ColumnElement,
    Integer,
    LargeBinary,
    SmallInteger,
    Text,
    Uuid,
    and_,
    bindparam,
    case,
    cast,
    column,
    exists,
    func,
    or_,
    select,
    true,
)
from sqlalchemy.dialects.postgresql import insert

from retrieval.database.fast_path import FastConnection, FastStatement, insert_row
from retrieval.database.parameters import USER_SUB, entered, given_rows, may_enter, parameter
from retrieval.database.rows import Expression
from retrieval.sealed import Opener
from retrieval.tables.cases import cases
from retrieval.tables.decisions import decision_slots, decisions
from retrieval.tables.keys import user_keys
from retrieval.tables.memories import facts, memories
from retrieval.tables.procedures import procedures
from retrieval.tables.sessions import sessions

_LATER = {"used_procedure_ids", "reward", "reward_source", "created_at"}
COLUMNS = tuple(column.name for column in decisions.c if column.name not in _LATER)
"""Columns of a decision that are written with it; the others are filled later, or by the database."""

CONTEXTS = 2
"""Seed of the hash of a user's name that is the lock of the user's contexts, shared by the transactions that log them.

A transaction that blanks them has the lock alone, see ``forget_contexts``: it waits for those that log, and then finds
what they stored. Those that come meanwhile do not wait: they store no text.
"""


@cache
def log_decision() -> FastStatement[bool]:
    """Returns the statement that writes a decision with its slate; its parameters are those of ``log``.

    The statement answers whether the key is the user's: text sealed with another key could not be opened. What was told
    is not stored while a text of the user is being deleted, or if it may quote a text that was deleted or edited
    meanwhile.
    """
    enter = entered(relaxed=True)
    key_id = parameter("key_id", Uuid)
    current = exists().where(user_keys.c.user_sub == USER_SUB, user_keys.c.key_id == key_id)
    is_known = or_(key_id.is_(None), current)
    lock = func.pg_try_advisory_xact_lock_shared(func.hashtextextended(USER_SUB, CONTEXTS), type_=Boolean)
    quotable = and_(lock, _are_there()).label("quotable")
    known = select(is_known.label("known"), quotable).where(enter.c.entered).cte("known")
    values_of: dict[str, Expression] = {name: bindparam(name, type_=decisions.c[name].type) for name in COLUMNS}
    kept = {"words": known.c.known, "told": and_(known.c.known, known.c.quotable)}
    for name, is_kept in kept.items():
        values_of[name] = case((is_kept, cast(values_of[name], LargeBinary)))
    values = select(*(values_of[name].label(name) for name in COLUMNS)).select_from(known)
    decision = (
        insert(decisions).from_select(COLUMNS, values).returning(decisions.c.user_sub, decisions.c.id).cte("decision")
    )
    columns = {"case_ids": column("case_id", Uuid), "propensities": column("propensity", REAL)}
    slate = given_rows(columns, "slate", numbered="place")
    slots = select(
        decision.c.user_sub, decision.c.id, cast(slate.c.place, SmallInteger), slate.c.case_id, slate.c.propensity
    ).join_from(decision, slate, true())
    names = ["user_sub", "decision_id", "place", "case_id", "propensity"]
    # without RETURNING, a Citus cluster would copy the rows, which row-level security refuses
    logged = insert(decision_slots).from_select(names, slots).returning(decision_slots.c.place).cte("logged")
    return FastStatement(select(known.c.known).add_cte(logged))


def _are_there() -> ColumnElement[bool]:
    """Returns the condition that the quoted rows, sessions and versions of procedures are there.

    An edited text is not there either: the edit replaced the memory by which the text before was recalled.
    """
    quoted = func.unnest(parameter("quoted_ids", ARRAY(Uuid))).column_valued("quoted")
    there = or_(
        *(exists().where(each.c.user_sub == USER_SUB, each.c.id == quoted) for each in (cases, facts, memories))
    )
    named = func.unnest(parameter("quoted_sessions", ARRAY(Text))).column_valued("named")
    session_there = exists().where(sessions.c.user_sub == USER_SUB, sessions.c.name == named)
    columns = {"procedure_ids": column("id", Uuid), "procedure_versions": column("version", Integer)}
    told = given_rows(columns, "told")
    same = procedures.c.id == told.c.id, procedures.c.version == told.c.version
    procedure_there = exists().where(procedures.c.user_sub == USER_SUB, *same)
    return and_(
        ~select(quoted).where(~there).exists(),
        ~select(named).where(~session_there).exists(),
        ~select(told.c.id).where(~procedure_there).exists(),
    )


async def log(connection: FastConnection, entry: Mapping[str, Any], context_text: str, opener: Opener) -> None:
    """Writes a decision to the log, with the served context, sealed; its query is sealed if the settings say so.

    Args:
        connection: connection of the decision's user.
        entry: the unsealed COLUMNS of the decision, by name, and in addition ``case_ids`` and ``propensities`` of the
            slate, in the order of places, and ``quoted_ids`` and ``quoted_sessions``, the ids of all cases, facts and
            recalled memories and the names of all sessions that the context may quote.
        context_text: the text of ``memory_context``.
        opener: keys of the users.
    """
    seals = opener.seals
    entry = {**entry, "words": None, "told": None, "query_group": None, "key_id": None}
    if seals is not None:
        seal = await seals.of_user(opener.database, connection)
        entry |= {"told": seal.seal("told", context_text, entry["id"]), "key_id": seal.key_id}
        if seals.seals_words:
            texts = {name: entry[name] for name in ("query", "rewritten")}
            entry |= {"words": seal.seal("decision", texts, entry["id"]), "query_group": seal.group_of(entry["query"])}
            entry |= {"query": "", "rewritten": None}
    if connection.citus:
        known = await _log_row_by_row(connection, entry)
    else:
        known = await connection.value(log_decision(), entry) is not False
    if not known and seals is not None:
        seals.forget(connection.user_sub)  # too late for this query: its words are not kept


async def _log_row_by_row(connection: FastConnection, entry: Mapping[str, Any]) -> bool:
    """Writes the decision and its slate as ``log_decision`` does, by a statement for each row.

    Returns whether the key is the user's.
    """
    is_key: bool | None = await connection.value(_IS_KEY, {"key_id": entry["key_id"]})
    known = entry["key_id"] is None or is_key is True
    try_lock = "SELECT pg_try_advisory_xact_lock_shared(hashtextextended($1, $2))"  # here, and not on a shard's node
    locked = await connection.driver.fetchval(try_lock, connection.user_sub, CONTEXTS)
    quotable = locked and await connection.value(_ARE_THERE, entry)
    kept = {"words": entry["words"] if known else None, "told": entry["told"] if known and quotable else None}
    await connection.driver.execute("SELECT casebank_set('synchronous_commit', 'off')")  # as entered(relaxed=True) does
    await connection.value(insert_row(decisions, COLUMNS), {**entry, **kept})
    slate = zip(entry["case_ids"], entry["propensities"], strict=True)
    for place, (case_id, propensity) in enumerate(slate, start=1):
        slot = {"decision_id": entry["id"], "place": place, "case_id": case_id, "propensity": propensity}
        await connection.value(insert_row(decision_slots, ("user_sub", *slot)), slot)
    return known


_IS_KEY: FastStatement[bool] = FastStatement(
    select(user_keys.c.key_id.is_not(None)).where(
        may_enter(), user_keys.c.user_sub == USER_SUB, user_keys.c.key_id == bindparam("key_id", type_=Uuid)
    )
)
"""Selects true if the user has the key ``key_id``."""
_ARE_THERE: FastStatement[bool] = FastStatement(select(_are_there()).where(may_enter()))
"""Selects whether all that a decision may quote is there; its parameters are among those of ``log``."""
