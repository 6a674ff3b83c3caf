"""The statements of advice: read an agent's earlier failures with what came of advice at them, and log new advice."""

from typing import Protocol
from uuid import UUID

from sqlalchemy import Integer, Uuid, bindparam, case, cast, false, func, or_, select, true
from sqlalchemy.dialects.postgresql import insert

from retrieval.database.fast_path import FastStatement
from retrieval.database.parameters import AGENT_KEY, USER_SUB, entered, may_enter
from retrieval.tables.cases import cases
from retrieval.tables.failures import advice, failures
from retrieval.tables.profiles import profiles

MOST = 400
"""Newest failures of an agent that are read."""


class FailureRow(Protocol):
    """The profile's switch, and an earlier failure with its case; without a failure the case's columns are None.

    Attributes:
        terms: keyed hashes of the words of the run's task.
        words: the error and the fix, sealed; None for a failure of another tool with another sign.
        told, helped: how often the fix was told at such a failure, and how often the failure then did not come back.
        told_here: whether it was told in the run that asks.
    """

    enabled: bool
    case_id: UUID | None
    place: int
    tool: int
    sign: int
    error: list[int]
    call: list[int]
    fix: list[int]
    fix_id: int | None
    words: bytes | None
    key_id: UUID
    terms: list[int]
    proven: bool
    outcome: str
    reward: float | None
    reward_source: str | None
    told: int
    helped: int
    told_here: bool


def _statement() -> FastStatement[FailureRow]:
    tool, sign = (cast(bindparam(name, type_=Integer), Integer) for name in ("tool", "sign"))
    run_id, retrieval_id = (cast(bindparam(name, type_=Uuid), Uuid) for name in ("run_id", "retrieval_id"))
    fix = func.unnest(advice.c.fix_ids).table_valued("fix_id", name="fixes").render_derived()
    here = or_(advice.c.run_id == run_id, advice.c.retrieval_id == retrieval_id)
    told = (
        select(
            advice.c.sign,
            cast(fix.c.fix_id, Integer).label("fix_id"),
            func.count(advice.c.came_back).label("told"),
            func.count().filter(advice.c.came_back.is_(false())).label("helped"),
            func.coalesce(func.bool_or(here), false()).label("told_here"),
        )
        .select_from(advice.join(fix, true()))
        .where(advice.c.user_sub == USER_SUB, advice.c.agent_key == AGENT_KEY)
        .group_by(advice.c.sign, fix.c.fix_id)
        .cte("told")
    )
    newest = (
        select(failures)
        .where(failures.c.user_sub == USER_SUB, failures.c.agent_key == AGENT_KEY)
        .order_by(failures.c.created_at.desc(), failures.c.case_id.desc(), failures.c.place.desc())
        .limit(MOST)
        .subquery("newest")
    )
    like = or_(newest.c.tool == tool, newest.c.sign == sign)
    rows = newest.join(cases, (cases.c.user_sub == newest.c.user_sub) & (cases.c.id == newest.c.case_id)).outerjoin(
        told, (told.c.sign == newest.c.sign) & (told.c.fix_id == newest.c.fix_id)
    )
    found = (
        select(
            *(newest.c[name] for name in ("case_id", "place", "tool", "sign", "error", "call", "fix", "fix_id")),
            case((like, newest.c.words)).label("words"),
            cases.c.key_id,
            cases.c.terms,
            *(cases.c[name] for name in ("proven", "outcome", "reward", "reward_source")),
            func.coalesce(told.c.told, 0).label("told"),
            func.coalesce(told.c.helped, 0).label("helped"),
            func.coalesce(told.c.told_here, false()).label("told_here"),
            newest.c.created_at,
        )
        .select_from(rows)
        .subquery("found")
    )
    return FastStatement.of(
        select(profiles.c.enabled, *(column for column in found.c if column.key != "created_at"))
        .select_from(profiles.outerjoin(found, true()))
        .where(may_enter(), profiles.c.user_sub == USER_SUB, profiles.c.agent_key == AGENT_KEY)
        .order_by(found.c.created_at, found.c.case_id, found.c.place)
    )


EARLIER_FAILURES = _statement()
"""Reads the agent's newest failures, the oldest first; takes agent_key, tool, sign, run_id and retrieval_id."""


def _log() -> FastStatement[bool]:
    enter = entered(relaxed=True)
    names = ("user_sub", "decision_id", "agent_key", "sign", "run_id", "retrieval_id", "fix_ids")
    values = select(*(cast(bindparam(name, type_=advice.c[name].type), advice.c[name].type) for name in names))
    row = insert(advice).from_select(names, values.where(enter.c.entered)).returning(true().label("logged"))
    return FastStatement.of(row)


LOG_ADVICE = _log()
"""Inserts the row of ``advice`` beside a logged decision."""
