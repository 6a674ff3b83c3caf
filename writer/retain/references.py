"""Checks that a run refers only to rows of its own user: its parent case, its retrieval, and the cases it used."""

from collections.abc import Sequence
from functools import cache
from uuid import UUID

from sqlalchemy import ColumnElement, Uuid, and_, bindparam, case, cast, exists, func, literal, or_, select
from sqlalchemy.dialects.postgresql import ARRAY

from retrieval.database.fast_path import FastConnection, FastStatement
from retrieval.database.parameters import AGENT_KEY, USER_SUB, may_enter
from retrieval.tables.cases import cases
from retrieval.tables.columns import ALL_AGENTS
from retrieval.tables.decisions import decision_slots, decisions
from retrieval.tables.memories import facts, knowledge
from retrieval.tables.procedures import procedures
from retrieval.tables.runs import runs
from retrieval.tables.sessions import sessions

_FAULTS = {
    "parent_case_id": "parent_case_id names a case that there is not",
    "retrieval_id": "retrieval_id names a retrieval of another agent",
    "no_retrieval": "retrieval_id is the id of something else, and of no retrieval",
    "used_case_ids": (
        "used_case_ids, or a step of the plan, names a case that there is not, and that the retrieval did not show"
    ),
}
"""Error messages for wrong references, by the field of the request; another user's case is reported as missing."""
_OTHERS = (cases, facts, knowledge, procedures, runs, sessions)
"""Tables whose ids a caller may mistake for the id of a retrieval."""
_NO_ID = UUID(int=0)
"""Id that no row has, in place of NULL: Postgres drops comparisons with NULL, and Citus then misses the user's key."""


async def wrong_reference(
    connection: FastConnection,
    agent_key: object,
    retrieval_id: UUID | None,
    parent_case_id: object,
    used_case_ids: object,
) -> str | None:
    """Returns the error message for the first wrong reference of a run; None if all references are right.

    An unknown retrieval is accepted, because a crash may have lost it; the run is stored without it. The id of another
    row of the user, such as a fact, is refused. A used case may have been deleted since the retrieval showed it.
    """
    if retrieval_id is None and parent_case_id is None and not used_case_ids:
        return None
    references = {
        "agent_key": agent_key,
        "retrieval_id": retrieval_id or _NO_ID,
        "parent_case_id": parent_case_id or _NO_ID,
        "used_case_ids": used_case_ids or [],
    }
    name = await connection.value(_first_wrong(), references)
    return None if name is None else _FAULTS[name]


@cache
def _first_wrong() -> FastStatement[str]:
    """Returns a statement that selects the field name of the first wrong reference, or NULL."""
    retrieval, parent = _given("retrieval_id"), _given("parent_case_id")
    known = exists().where(cases.c.user_sub == USER_SUB, cases.c.id == parent)
    of_another = exists().where(
        decisions.c.user_sub == USER_SUB,
        decisions.c.id == retrieval,
        decisions.c.agent_key != AGENT_KEY,
        decisions.c.agent_key != literal(ALL_AGENTS),
    )
    exists_already = exists().where(decisions.c.user_sub == USER_SUB, decisions.c.id == retrieval)
    of_something_else = or_(*(exists().where(t.c.user_sub == USER_SUB, t.c.id == retrieval) for t in _OTHERS))
    named = func.unnest(cast(bindparam("used_case_ids", type_=ARRAY(Uuid)), ARRAY(Uuid))).column_valued("named")
    own = exists().where(cases.c.user_sub == USER_SUB, cases.c.id == named)
    shown = exists().where(
        decision_slots.c.user_sub == USER_SUB,
        decision_slots.c.decision_id == retrieval,
        decision_slots.c.case_id == named,
    )
    stranger = select(named).where(~own, ~shown).exists()
    faults: Sequence[tuple[ColumnElement[bool], str]] = [
        (and_(parent != _NO_ID, ~known), "parent_case_id"),
        (of_another, "retrieval_id"),
        (and_(retrieval != _NO_ID, ~exists_already, of_something_else), "no_retrieval"),
        (stranger, "used_case_ids"),
    ]
    return FastStatement(select(case(*faults)).where(may_enter()))


def _given(name: str) -> ColumnElement[UUID]:
    return cast(bindparam(name, type_=Uuid), Uuid)
