"""Statements of advice: read an agent's earlier failures and runs, and the effect of past advice; log new advice."""

from typing import Protocol
from uuid import UUID

from sqlalchemy import (
    CTE,
    ColumnElement,
    Integer,
    Select,
    Subquery,
    Text,
    Uuid,
    and_,
    any_,
    bindparam,
    case,
    cast,
    false,
    func,
    literal_column,
    or_,
    select,
    true,
)
from sqlalchemy.dialects.postgresql import ARRAY, insert

from retrieval.database.fast_path import FastStatement, Record
from retrieval.database.parameters import AGENT_KEY, USER_SUB, entered, may_enter, parameter
from retrieval.search.scope import ready
from retrieval.tables.cases import cases
from retrieval.tables.decisions import decision_slots, decisions
from retrieval.tables.failures import advice, failures
from retrieval.tables.profiles import profiles
from retrieval.tables.sessions import sessions

MOST = 400
"""Largest number of an agent's newest failures, and of its newest runs, that are read."""


class FailureRow(Protocol):
    """A row of EARLIER_FAILURES: an earlier failure with its case, or a case without a failure.

    A profile without cases has one row, in which only ``enabled`` is not None.

    Attributes:
        enabled: true if the profile's memory is switched on.
        place: number of the failure among those of its run; None, like the failure's other columns, for a case without
            a failure.
        sign: keyed hash of the tool and the error's first line.
        terms: keyed hashes of the words of the task of the case.
        words: the error and the fix, sealed; None for a failure of another tool and with another sign than the failed
            call.
        told, helped: number of times that the fix was told at such a failure, and number of these after which the
            failure did not come back.
        told_here: true if the run that now asks for advice already got the fix.
        newest: true if the case is one of the agent's newest runs with a plan.
        shown_here: true if the run that now asks for advice already got the fix or plan of the case.
        repeated_id: last advice that the run got for the same request; ``told_here`` and ``shown_here`` do not count
            advice for the same request.
        repeated_text: text of the advice ``repeated_id``, sealed.
    """

    enabled: bool
    case_id: UUID | None
    place: int | None
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
    newest: bool
    shown_here: bool
    repeated_id: UUID | None
    repeated_text: bytes | None


def _session() -> Select[UUID]:
    """Returns the statement for the id of the agent's session of this name."""
    named = sessions.c.name == parameter("session", Text)
    return select(sessions.c.id).where(sessions.c.user_sub == USER_SUB, sessions.c.agent_key == AGENT_KEY, named)


def _told(here: ColumnElement[bool]) -> CTE:
    """Returns the statement for the effect of each fix that was told, and whether it was told ``here``."""
    fix = func.unnest(advice.c.fix_ids).table_valued("fix_id", name="fixes").render_derived()
    return (
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


def _shown(here: ColumnElement[bool]) -> CTE:
    """Returns the statement for the cases whose fix or plan was told ``here``."""
    return (
        select(decision_slots.c.case_id)
        .join(advice, advice.c.decision_id == decision_slots.c.decision_id)
        .where(decision_slots.c.user_sub == USER_SUB, advice.c.user_sub == USER_SUB, here)
        .distinct()
        .cte("shown")
    )


def _last(wanted: ColumnElement[bool]) -> Subquery:
    """Returns the statement for the id and the text of the agent's newest advice that is ``wanted``."""
    return (
        select(decisions.c.id.label("repeated_id"), decisions.c.told.label("repeated_text"))
        .join(advice, advice.c.decision_id == decisions.c.id)
        .where(decisions.c.user_sub == USER_SUB, advice.c.user_sub == USER_SUB, advice.c.agent_key == AGENT_KEY, wanted)
        .order_by(decisions.c.id.desc())
        .limit(1)
        .subquery("repeated")
    )


def _statement() -> FastStatement[FailureRow]:
    tool, sign, request = (parameter(name, Integer) for name in ("tool", "sign", "request"))
    run_id, retrieval_id = (parameter(name, Uuid) for name in ("run_id", "retrieval_id"))
    going_on = advice.c.session_id == _session().scalar_subquery(), advice.c.came_back.is_(None)
    of_run = or_(advice.c.run_id == run_id, advice.c.retrieval_id == retrieval_id, and_(*going_on))
    here = and_(of_run, advice.c.request.is_distinct_from(request))
    repeated = _last(and_(of_run, advice.c.request == request))
    newest = (
        select(failures)
        .where(failures.c.user_sub == USER_SUB, failures.c.agent_key == AGENT_KEY)
        .order_by(failures.c.created_at.desc(), failures.c.case_id.desc(), failures.c.place.desc())
        .limit(MOST)
        .subquery("newest")
    )
    runs = (
        select(cases.c.id)
        .where(*ready(), func.cardinality(cases.c.plan) > 0)
        .order_by(cases.c.created_at.desc(), cases.c.id.desc())
        .limit(parameter("runs", Integer))
        .subquery("runs")
    )
    told, shown, like = _told(here), _shown(here), or_(newest.c.tool == tool, newest.c.sign == sign)
    case_id = func.coalesce(newest.c.case_id, runs.c.id)
    rows = (
        newest.join(runs, runs.c.id == newest.c.case_id, full=True)
        .join(
            cases,
            (cases.c.user_sub == USER_SUB) & (cases.c.id == case_id) & (cases.c.status != literal_column("'pruned'")),
        )
        .outerjoin(told, (told.c.sign == newest.c.sign) & (told.c.fix_id == newest.c.fix_id))
        .outerjoin(shown, shown.c.case_id == cases.c.id)
    )
    found = (
        select(
            cases.c.id.label("case_id"),
            *(newest.c[name] for name in ("place", "tool", "sign", "error", "call", "fix", "fix_id")),
            case((like, newest.c.words)).label("words"),
            *(cases.c[name] for name in ("key_id", "terms")),
            *(cases.c[name] for name in ("proven", "outcome", "reward", "reward_source")),
            func.coalesce(told.c.told, 0).label("told"),
            func.coalesce(told.c.helped, 0).label("helped"),
            func.coalesce(told.c.told_here, false()).label("told_here"),
            runs.c.id.is_not(None).label("newest"),
            shown.c.case_id.is_not(None).label("shown_here"),
            func.coalesce(newest.c.created_at, cases.c.created_at).label("created_at"),
        )
        .select_from(rows)
        .subquery("found")
    )
    return FastStatement(
        select(profiles.c.enabled, *(column for column in found.c if column.key != "created_at"), *repeated.c)
        .select_from(profiles.outerjoin(found, true()).outerjoin(repeated, true()))
        .where(may_enter(), profiles.c.user_sub == USER_SUB, profiles.c.agent_key == AGENT_KEY)
        .order_by(found.c.created_at, found.c.case_id, found.c.place)
    )


EARLIER_FAILURES = _statement()
"""Reads the agent's newest failures and its newest runs, the oldest first.

Parameters: agent_key, tool and sign of the failed call, run_id, retrieval_id, session (its name), request (its keyed
hash), and runs (the largest number of runs).
"""


PLANS_OF = FastStatement[Record](
    select(*(cases.c[name] for name in ("id", "key_id", "words", "task", "plan", "moves"))).where(
        may_enter(), cases.c.user_sub == USER_SUB, cases.c.id == any_(parameter("case_ids", ARRAY(Uuid)))
    )
)
"""Reads the plans of cases, which may be in ``words``, sealed; its parameter is case_ids."""


def _log() -> FastStatement[bool]:
    enter = entered(relaxed=True)
    names = ("user_sub", "decision_id", "agent_key", "sign", "run_id", "retrieval_id", "fix_ids", "request")
    values = select(*(cast(bindparam(name, type_=advice.c[name].type), advice.c[name].type) for name in names))
    values = values.add_columns(_session().scalar_subquery()).where(enter.c.entered)
    row = insert(advice).from_select([*names, "session_id"], values).returning(true().label("logged"))
    return FastStatement(row)


HOLD_SESSION = FastStatement[UUID](_session().where(may_enter()).with_for_update(read=True, key_share=True))
"""Keeps the agent's session of the name ``session`` from being deleted until the transaction ends, if there is one.

It comes before the decision: whoever deletes a session locks it before the texts of decisions.
"""
LOG_ADVICE = _log()
"""Inserts the row of the table ``advice`` that belongs to a logged decision.

Parameters: the row's columns, and session (the session's name, which need not exist)."""
