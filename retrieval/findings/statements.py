"""Statements that look up findings: the one that may answer a call, with later changes, and all those of a run."""

from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    Boolean,
    ColumnElement,
    Float,
    Integer,
    Select,
    Text,
    Uuid,
    and_,
    any_,
    bindparam,
    case,
    cast,
    false,
    func,
    literal,
    literal_column,
    or_,
    select,
    true,
    tuple_,
)
from sqlalchemy.dialects.postgresql import ARRAY

from retrieval.database.fast_path import FastStatement
from retrieval.database.parameters import AGENT_KEY, USER_SUB, may_enter, parameter
from retrieval.database.rows import Expression, Rows
from retrieval.tables.kinds import FindingKind
from retrieval.tables.profiles import profiles
from retrieval.tables.runs import findings, run_steps, runs

MOST_SHOWN = 2_000
"""Largest number of a run's findings, the newest, from which a summary is made."""

NEAREST = 0.99
"""Highest similarity of two different queries with equal words, such as "from a to b" and "from b to a"."""
RUN_ID = bindparam("run_id", type_=Uuid)
_NO_PLACES = literal_column("'{}'::bigint[]", ARRAY(BigInteger))


class RunAsked(Protocol):
    """The run in which an agent is about to make a call, and the finding that answers the call best.

    The finding's columns are None if no finding fits.

    Attributes:
        last_step: number of the last step of the run that has a finding.
        similarity: share of words that the call's query and the finding's have in common, 0 to 1.
        same_content: true if the finding is about a file of the same content; None if the call has no hash of it.
        changed: true if a later step changed the finding's subject; false, as ``in_doubt``, for one of another run.
        in_doubt: true if a later step may have changed the finding's subject.
        content: payload of the finding's step, sealed; None if not requested, or if it is in the payload of the run's
            case.
    """

    run_id: UUID
    agent_key: str
    key_id: UUID
    tool_kinds: Any
    last_step: int
    found_run_id: UUID | None
    step: int
    part: int
    kind: FindingKind
    success: bool
    similarity: float
    same_content: bool | None
    changed: bool
    in_doubt: bool
    payload: bytes
    content: bytes | None
    found_case_id: UUID | None
    created_at: datetime


_QUERY, _PATH, _CONTENT = (parameter(f"{of}_hash", BigInteger) for of in ("query", "path", "content"))
_TERMS: Expression = parameter("terms", ARRAY(BigInteger))
_FIRST, _LAST = parameter("first_line", Integer), parameter("last_line", Integer)


def _fits(table: Any) -> ColumnElement[bool]:
    """Returns the condition that a finding fits a call: it has the call's lines of a file, or shares words with it."""
    lines = case(
        (_FIRST.is_(None), table.c.first_line.is_(None)),
        else_=and_(func.coalesce(table.c.first_line, 1) <= _FIRST, table.c.last_line >= _LAST),
    )
    kind = parameter("kind", Text)
    near = or_(table.c.query_hash == _QUERY, table.c.terms.overlap(_TERMS))
    return and_(
        table.c.kind == kind,
        case((kind == "read", and_(table.c.path_hash == _PATH, lines)), else_=near),
    )


def _similarity(table: Any) -> ColumnElement[float]:
    """Returns the share of words that two queries have in common; 1 if the queries are equal."""
    term = func.unnest(table.c.terms).table_valued("term", name="own").render_derived()
    shared = select(func.count()).select_from(term).where(term.c.term == any_(_TERMS)).scalar_subquery()
    every = func.cardinality(table.c.terms) + func.cardinality(_TERMS) - shared
    same = or_(table.c.kind == "read", table.c.query_hash == _QUERY)
    near = func.least(cast(shared, Float) / func.greatest(every, 1), NEAREST)
    return case((same, 1.0), else_=near)


def _changes(found: Any, owner: Expression, run_id: Expression, enters_count: Expression) -> Any:
    """Returns a subquery of two flags for a run's finding: later steps changed its subject, or may have done so.

    A step without known places may have changed anything. A reading or a search without known places may be about any
    file; another call without them need not be about files.

    Args:
        found: the finding.
        owner: the user.
        run_id: the run.
        enters_count: true if the finding is in doubt once a step of the run, even an earlier one, entered a folder.
    """
    change = findings.alias("change")
    folder = parameter("folder", BigInteger)
    enters, known = folder == any_(change.c.place_keys), change.c.place_keys != _NO_PLACES
    acts = and_(tuple_(change.c.step, change.c.part) > tuple_(found.c.step, found.c.part), ~enters)
    anywhere, is_other = func.cardinality(found.c.place_keys) == 0, found.c.kind == "other"
    by_place = or_(change.c.place_keys.overlap(found.c.place_marks), found.c.place_keys.overlap(change.c.place_marks))
    touches, may_touch = or_(and_(anywhere, ~is_other), by_place), and_(anywhere, is_other)
    changed, in_doubt = and_(acts, known, touches), or_(and_(acts, or_(~known, may_touch)), and_(enters, enters_count))
    return (
        select(
            func.coalesce(func.bool_or(changed), false()).label("changed"),
            func.coalesce(func.bool_or(in_doubt), false()).label("in_doubt"),
        )
        .where(change.c.user_sub == owner, change.c.run_id == run_id, change.c.kind == "write")
        .where(found.c.kind != "answer")
        .correlate(runs, found)
        .lateral("changes")
    )


def _in_this_run() -> FastStatement[RunAsked]:
    """Returns the statement for the run's finding, even of a failure, whose query is nearest to that of a call.

    Of equally near findings it is the newest. A hash of a file's content is compared with that of the same lines.
    """
    similarity = _similarity(findings).label("similarity")
    same_lines = case(
        (_CONTENT.is_(None), False),
        else_=and_(
            findings.c.first_line.is_not_distinct_from(_FIRST), or_(_FIRST.is_(None), findings.c.last_line == _LAST)
        ),
    )
    best = (
        select(findings, similarity)
        .where(findings.c.user_sub == USER_SUB, findings.c.run_id == runs.c.id, _fits(findings))
        .order_by(similarity.desc(), same_lines.desc(), findings.c.step.desc(), findings.c.part.desc())
        .limit(literal_column("1"))
        .correlate(runs)
        .lateral("best")
    )
    relative = or_(parameter("in_shell", Boolean), parameter("folder", BigInteger) == any_(best.c.place_marks))
    changes = _changes(best, USER_SUB, runs.c.id, relative)
    newest = findings.alias("newest")
    last_step = (
        select(func.max(newest.c.step))
        .where(newest.c.user_sub == USER_SUB, newest.c.run_id == runs.c.id)
        .correlate(runs)
        .label("last_step")
    )
    profile = and_(profiles.c.user_sub == USER_SUB, profiles.c.agent_key == runs.c.agent_key)
    statement = (
        select(*_asked(best), *changes.c, profiles.c.tool_kinds, last_step)
        .select_from(
            runs.join(profiles, profile)
            .outerjoin(best, true())
            .outerjoin(changes, true())
            .outerjoin(run_steps, _is_step_of(best))
        )
        .where(may_enter(), runs.c.user_sub == USER_SUB, runs.c.id == RUN_ID)
    )
    return FastStatement(statement)


def _in_earlier_runs() -> FastStatement[RunAsked]:
    """Returns the statement for the finding of the agent's other runs that fits a call best.

    Findings about the same content come first, then those with the nearest query, then the newest. The run of the call
    need not have begun.
    """
    similarity = _similarity(findings).label("similarity")
    same = func.coalesce(findings.c.content_hash == _CONTENT, False).label("same_content")
    best = (
        select(findings, similarity, same)
        .where(
            findings.c.user_sub == USER_SUB,
            findings.c.agent_key == cast(AGENT_KEY, Text),
            findings.c.run_id != RUN_ID,
            findings.c.success,
            or_(
                findings.c.path_hash == _PATH,
                findings.c.query_hash == _QUERY,
                findings.c.terms.overlap(_TERMS),
            ),
            _fits(findings),
        )
        .order_by(
            same.desc(),
            similarity.desc(),
            findings.c.created_at.desc(),
            findings.c.run_id.desc(),
            findings.c.step.desc(),
            findings.c.part.desc(),
        )
        .limit(literal_column("1"))
        .subquery("best")
    )
    of_run = and_(runs.c.user_sub == USER_SUB, runs.c.id == best.c.run_id)
    statement = (
        select(
            *_asked(best),
            cast(None, Text).label("tool_kinds"),
            literal_column("0", Integer).label("last_step"),
            false().label("changed"),
            false().label("in_doubt"),
        )
        .select_from(best.join(runs, of_run).outerjoin(run_steps, _is_step_of(best)))
        .where(may_enter())
    )
    return FastStatement(statement)


def _asked(best: Any) -> tuple[Any, ...]:
    """Returns the columns of the run and of its finding that both statements have."""
    names = ("step", "part", "kind", "success", "payload", "created_at", "similarity")
    wanted = parameter("with_content", Boolean)
    return (
        runs.c.id.label("run_id"),
        runs.c.agent_key,
        runs.c.key_id,
        runs.c.case_id.label("found_case_id"),
        best.c.run_id.label("found_run_id"),
        *(best.c[name] for name in names),
        (best.c.content_hash == _CONTENT).label("same_content"),
        case((wanted, run_steps.c.payload)).label("content"),
    )


def _is_step_of(best: Any) -> ColumnElement[bool]:
    return and_(
        run_steps.c.user_sub == USER_SUB, run_steps.c.run_id == best.c.run_id, run_steps.c.number == best.c.step
    )


class AgentAsked(Protocol):
    """An agent, read for a call of a run that has not begun yet, with the kinds of its tools."""

    agent_key: str
    tool_kinds: Any


def _agents() -> FastStatement[AgentAsked]:
    """Returns the statement for the agent of this name; without a name, for two of the user's agents.

    So a user's only agent is found without its name.
    """
    named = or_(cast(AGENT_KEY, Text).is_(None), profiles.c.agent_key == cast(AGENT_KEY, Text))
    return FastStatement(
        select(profiles.c.agent_key, profiles.c.tool_kinds)
        .where(may_enter(), profiles.c.user_sub == USER_SUB, named)
        .order_by(profiles.c.agent_key)
        .limit(literal_column("2"))
    )


IN_THIS_RUN = _in_this_run()
AGENTS = _agents()
IN_EARLIER_RUNS = _in_earlier_runs()


def findings_of(user_sub: str, run_id: UUID, folder: int) -> Rows:
    """Returns the statement for a run's newest findings.

    The column ``changed`` is true for findings whose subject a later step changed, ``in_doubt`` for those whose subject
    a later step may have changed. ``folder`` is the key of steps that only change the shell's folder.
    """
    owner, run = literal(user_sub), literal(run_id, Uuid)
    changes = _changes(findings, owner, run, false())
    names = ("step", "part", "kind", "success", "query_hash", "payload")
    return (
        select(*(findings.c[name] for name in names), *changes.c)
        .select_from(findings.join(changes, true()))
        .where(findings.c.user_sub == user_sub, findings.c.run_id == run_id)
        .order_by(findings.c.step.desc(), findings.c.part.desc())
        .limit(MOST_SHOWN)
        .params(folder=folder)
    )


def run_named(user_sub: str, run_id: UUID) -> Select[str]:
    """Returns the statement for the name of a run's agent; it has no row if the user has no such run."""
    return select(runs.c.agent_key).where(runs.c.user_sub == user_sub, runs.c.id == run_id)
