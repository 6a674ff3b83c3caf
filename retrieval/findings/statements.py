"""Statements that look findings up: one that answers a call, the changes since, and all of a run."""

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
    all_,
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
from retrieval.database.parameters import USER_SUB, may_enter
from retrieval.database.rows import Expression, Rows
from retrieval.tables.findings import findings
from retrieval.tables.kinds import FindingKind
from retrieval.tables.profiles import profiles
from retrieval.tables.runs import run_steps, runs

MOST_SHOWN = 2_000
"""Newest findings of a run that a summary is made from."""

NEAREST = 0.99
"""Highest similarity of two different queries with equal words, such as "from a to b" and "from b to a"."""
RUN_ID = bindparam("run_id", type_=Uuid)
AGENT_KEY = bindparam("agent_key", type_=Text)
_NONE = literal_column("'{}'::bigint[]", ARRAY(BigInteger))


class RunAsked(Protocol):
    """The run of a question, and the finding that fits it best; the finding's columns are null if no finding fits.

    Attributes:
        last_step: last step of the run that has a finding.
        similarity: share of common words of the two queries, 0 to 1.
        changed: true if a later step changed the finding's subject.
        in_doubt: true if a later step may have changed it.
        content: payload of its step, sealed; null if not requested, or if it stands in the run's case.
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
    changed: bool | None
    in_doubt: bool | None
    payload: bytes
    content: bytes | None
    found_case_id: UUID | None
    created_at: datetime


def _number(name: str) -> ColumnElement[int]:
    return cast(bindparam(name, type_=BigInteger), BigInteger)


def _numbers(name: str) -> Expression:
    return cast(bindparam(name, type_=ARRAY(BigInteger)), ARRAY(BigInteger))


def _fits(table: Any) -> ColumnElement[bool]:
    """Returns the condition: a finding about a file has the requested lines, any other has words in common."""
    first, last = (cast(bindparam(name, type_=Integer), Integer) for name in ("first_line", "last_line"))
    lines = case(
        (first.is_(None), table.c.first_line.is_(None)),
        else_=and_(func.coalesce(table.c.first_line, 1) <= first, table.c.last_line >= last),
    )
    kind = cast(bindparam("kind", type_=Text), Text)
    near = or_(table.c.query_hash == _number("query_hash"), table.c.terms.overlap(_numbers("terms")))
    return and_(
        table.c.kind == kind,
        case((kind == "read", and_(table.c.path_hash == _number("path_hash"), lines)), else_=near),
    )


def _similarity(table: Any) -> ColumnElement[float]:
    """Returns the share of words that two queries have in common; 1 if the queries are equal."""
    term = func.unnest(table.c.terms).table_valued("term", name="own").render_derived()
    shared = select(func.count()).select_from(term).where(term.c.term == any_(_numbers("terms"))).scalar_subquery()
    every = func.cardinality(table.c.terms) + func.cardinality(_numbers("terms")) - shared
    same = or_(table.c.kind == "read", table.c.query_hash == _number("query_hash"))
    near = func.least(cast(shared, Float) / func.greatest(every, 1), NEAREST)
    return case((same, 1.0), else_=near)


def _touches(found: Any, change: Any) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    """Returns the conditions that a change of known places touches a finding, and that nobody knows whether it does.

    A reading or a search without known places is about any file; another call without them need not be about files.
    """
    anywhere = func.cardinality(found.c.place_keys) == 0
    by_place = or_(change.c.place_keys.overlap(found.c.place_marks), found.c.place_keys.overlap(change.c.place_marks))
    return or_(and_(anywhere, found.c.kind != "other"), by_place), and_(anywhere, found.c.kind == "other")


def _changes_since(best: Any) -> Any:
    """Returns the condition that a later step of the run changed the finding's subject, and that one may have."""
    change = findings.alias("change")
    folder = _number("folder")
    moves = folder == any_(change.c.place_keys)
    later = tuple_(change.c.step, change.c.part) > tuple_(best.c.step, best.c.part)
    touches, may_touch = _touches(best, change)
    known = change.c.place_keys != _NONE
    depends = best.c.kind != "answer"
    by_folder = or_(cast(bindparam("in_shell", type_=Boolean), Boolean), folder == any_(best.c.place_marks))
    return (
        select(
            func.bool_or(and_(later, known, ~moves, touches)).label("changed"),
            func.bool_or(or_(and_(later, or_(~known, may_touch)), and_(moves, by_folder))).label("in_doubt"),
        )
        .where(change.c.user_sub == USER_SUB, change.c.run_id == runs.c.id, change.c.kind == "write", depends)
        .correlate(runs, best)
        .lateral("changes")
    )


def _in_this_run() -> FastStatement[RunAsked]:
    """The best finding of the run: the nearest query, and of several the newest, however it went.

    Where a hash is to be compared, it is the hash of just these lines.
    """
    similarity = _similarity(findings).label("similarity")
    first, last = (cast(bindparam(name, type_=Integer), Integer) for name in ("first_line", "last_line"))
    same_lines = case(
        (_number("content_hash").is_(None), False),
        else_=and_(
            findings.c.first_line.is_not_distinct_from(first), or_(first.is_(None), findings.c.last_line == last)
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
    changes = _changes_since(best)
    newest = findings.alias("newest")
    last_step = (
        select(func.max(newest.c.step))
        .where(newest.c.user_sub == USER_SUB, newest.c.run_id == runs.c.id)
        .correlate(runs)
        .scalar_subquery()
    )
    step = and_(
        run_steps.c.user_sub == USER_SUB, run_steps.c.run_id == best.c.run_id, run_steps.c.number == best.c.step
    )
    wanted = cast(bindparam("with_content", type_=Boolean), Boolean)
    profile = and_(profiles.c.user_sub == USER_SUB, profiles.c.agent_key == runs.c.agent_key)
    statement = (
        select(
            *_of_run(profiles.c.tool_kinds, last_step),
            *_of_finding(best),
            best.c.similarity,
            changes.c.changed,
            changes.c.in_doubt,
            case((wanted, run_steps.c.payload)).label("content"),
            runs.c.case_id.label("found_case_id"),
        )
        .select_from(
            runs.join(profiles, profile).outerjoin(best, true()).outerjoin(changes, true()).outerjoin(run_steps, step)
        )
        .where(may_enter(), runs.c.user_sub == USER_SUB, runs.c.id == RUN_ID)
    )
    return FastStatement.of(statement)


def _in_earlier_runs() -> FastStatement[RunAsked]:
    """The best finding of the agent's other runs: the same content first, the nearest query, the newest.

    The run itself need not have begun.
    """
    similarity = _similarity(findings).label("similarity")
    same = func.coalesce(findings.c.content_hash == _number("content_hash"), False).label("same_content")
    best = (
        select(findings, similarity, same)
        .where(
            findings.c.user_sub == USER_SUB,
            findings.c.agent_key == cast(AGENT_KEY, Text),
            findings.c.run_id != RUN_ID,
            findings.c.success,
            or_(
                findings.c.path_hash == _number("path_hash"),
                findings.c.query_hash == _number("query_hash"),
                findings.c.terms.overlap(_numbers("terms")),
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
    step = and_(
        run_steps.c.user_sub == USER_SUB, run_steps.c.run_id == best.c.run_id, run_steps.c.number == best.c.step
    )
    wanted = cast(bindparam("with_content", type_=Boolean), Boolean)
    statement = (
        select(
            *_of_run(cast(None, Text), literal_column("0", Integer)),
            *_of_finding(best),
            best.c.similarity,
            cast(None, Boolean).label("changed"),
            cast(None, Boolean).label("in_doubt"),
            case((wanted, run_steps.c.payload)).label("content"),
            runs.c.case_id.label("found_case_id"),
        )
        .select_from(
            best.join(runs, and_(runs.c.user_sub == USER_SUB, runs.c.id == best.c.run_id)).outerjoin(run_steps, step)
        )
        .where(may_enter())
    )
    return FastStatement.of(statement)


def _of_run(tool_kinds: Any, last_step: Any) -> tuple[Any, ...]:
    named = tool_kinds.label("tool_kinds"), last_step.label("last_step")
    return runs.c.id.label("run_id"), runs.c.agent_key, runs.c.key_id, *named


def _of_finding(best: Any) -> tuple[Any, ...]:
    names = ("step", "part", "kind", "success", "payload", "created_at")
    same = best.c.content_hash == _number("content_hash")
    return best.c.run_id.label("found_run_id"), *(best.c[name] for name in names), same.label("same_content")


class AgentAsked(Protocol):
    """The agent of a run that has not begun."""

    agent_key: str
    tool_kinds: Any


def _agents() -> FastStatement[AgentAsked]:
    """The agent of this name; without a name the user's first two, so that an only one is found."""
    named = or_(cast(AGENT_KEY, Text).is_(None), profiles.c.agent_key == cast(AGENT_KEY, Text))
    return FastStatement.of(
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

    ``changed`` marks those whose subject a later step changed, ``in_doubt`` those whose subject it may have changed.
    ``folder`` is the key of steps that change only the shell's folder.
    """
    change = findings.alias("change")
    known = change.c.place_keys != _NONE
    touches, may_touch = _touches(findings, change)
    changes = (
        select(
            func.coalesce(func.bool_or(and_(known, touches)), false()).label("changed"),
            func.coalesce(func.bool_or(or_(~known, may_touch)), false()).label("in_doubt"),
        )
        .where(
            change.c.user_sub == user_sub,
            change.c.run_id == run_id,
            change.c.kind == "write",
            findings.c.kind != "answer",
            literal(folder, BigInteger) != all_(change.c.place_keys),
            tuple_(change.c.step, change.c.part) > tuple_(findings.c.step, findings.c.part),
        )
        .correlate(findings)
        .lateral("changes")
    )
    names = ("step", "part", "kind", "success", "query_hash", "payload")
    return (
        select(*(findings.c[name] for name in names), changes.c.changed, changes.c.in_doubt)
        .select_from(findings.join(changes, true()))
        .where(findings.c.user_sub == user_sub, findings.c.run_id == run_id)
        .order_by(findings.c.step.desc(), findings.c.part.desc())
        .limit(MOST_SHOWN)
    )


def run_named(user_sub: str, run_id: UUID) -> Select[str]:
    """Returns the statement for the agent of a run; no row if the user has no such run."""
    return select(runs.c.agent_key).where(runs.c.user_sub == user_sub, runs.c.id == run_id)
