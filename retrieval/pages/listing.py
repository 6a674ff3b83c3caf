"""The statements behind the pages that show a bank: cases, profiles, the audit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from sqlalchemy import ColumnElement, Select, Table, Uuid, and_, cast, func, literal, or_, select, union_all
from sqlalchemy.dialects.postgresql import ARRAY, aggregate_order_by, array, distinct_on

from retrieval.database.rows import Rows
from retrieval.tables.audit import audit
from retrieval.tables.cases import cases
from retrieval.tables.decisions import decision_slots, decisions
from retrieval.tables.kinds import QueryKind
from retrieval.tables.procedures import procedure_reviews, procedures
from retrieval.tables.profiles import profiles
from retrieval.tables.runs import run_steps, runs
from retrieval.tables.sessions import sessions, turns

SHOWN = (
    "id",
    "agent_key",
    "kind",
    "parent_case_id",
    "status",
    "task",
    "plan",
    "words",
    "tools",
    "tags",
    "outcome",
    "reward",
    "reward_source",
    "step_count",
    "error_count",
    "occurrences",
    "merged_into",
    "retrieval_id",
    "used_procedure_ids",
    "reuse_count",
    "reuse_reward",
    "attempts",
    "last_error",
    "created_at",
    "updated_at",
)
"""The columns of a case that are shown as they are; the sealed payload and the search vector are not."""


def _referred_to() -> ColumnElement[list[UUID]]:
    """The cases that the run used, as ``reference_case_ids``; those of its slate, by place, where it did not say."""
    slot = decision_slots.c
    slate = (
        select(func.array_agg(aggregate_order_by(slot.case_id, slot.place)))
        .where(slot.user_sub == cases.c.user_sub, slot.decision_id == cases.c.retrieval_id)
        .scalar_subquery()
    )
    return func.coalesce(cases.c.used_case_ids, slate, cast(array([]), ARRAY(Uuid))).label("reference_case_ids")


def _named_session() -> ColumnElement[str]:
    """The name of the session that the run was a part of, as ``session_id``; NULL where there is none."""
    mine = sessions.c.user_sub == cases.c.user_sub, sessions.c.id == cases.c.session_id
    return select(sessions.c.name).where(*mine).scalar_subquery().label("session_id")


def one_case(user_sub: str, case_id: UUID) -> Rows:
    """Returns the statement for a case with its sealed payload."""
    columns = [cases.c[name] for name in (*SHOWN, "payload")]
    return select(*columns, _referred_to(), _named_session()).where(cases.c.user_sub == user_sub, cases.c.id == case_id)


def page_of_cases(user_sub: str, only: Mapping[str, object], *, before: UUID | None, limit: int) -> Rows:
    """Returns the statement for the newest ``limit`` cases older than ``before``; ids rise with time (UUIDv7).

    ``only`` has the values that columns must have; None lets everything through.
    """
    shown = (cases.c[name] for name in SHOWN)
    statement = select(*shown, _referred_to(), _named_session()).where(cases.c.user_sub == user_sub)
    wanted = [cases.c[name] == value for name, value in only.items() if value is not None]
    return _page(statement.where(*wanted), cases, before, limit)


_SHOWN_OF_RUN = (
    "id",
    "agent_key",
    "status",
    "words",
    "retrieval_id",
    "step_count",
    "last_step_at",
    "ended_at",
    "case_id",
    "created_at",
)
"""The columns of a run under way that are shown."""


def one_run(user_sub: str, run_id: UUID) -> Rows:
    """Returns the statement for a run under way, or one that was."""
    shown = (runs.c[name] for name in _SHOWN_OF_RUN)
    return select(*shown).where(runs.c.user_sub == user_sub, runs.c.id == run_id)


def page_of_runs(user_sub: str, only: Mapping[str, object], *, before: UUID | None, limit: int) -> Rows:
    """Returns the statement for ``limit`` runs whose id is below ``before``, falling; ``only`` as for cases."""
    statement = select(*(runs.c[name] for name in _SHOWN_OF_RUN)).where(runs.c.user_sub == user_sub)
    wanted = [runs.c[name] == value for name, value in only.items() if value is not None]
    return _page(statement.where(*wanted), runs, before, limit)


def steps_of_run(user_sub: str, run_id: UUID, numbers: Sequence[int] | None = None) -> Select[int, bytes]:
    """Returns the statement for the steps of a run in their order, or for those of these numbers alone."""
    steps = select(run_steps.c.number, run_steps.c.payload).where(
        run_steps.c.user_sub == user_sub, run_steps.c.run_id == run_id
    )
    if numbers is not None:
        steps = steps.where(run_steps.c.number.in_(numbers))
    return steps.order_by(run_steps.c.number)


def page_of_sessions(user_sub: str, agent_key: str | None, *, before: UUID | None, limit: int) -> Rows:
    """Returns the statement for ``limit`` sessions whose id is below ``before``, falling; ids rise with time."""
    shown = ("id", "name", "agent_key", "turn_count", "last_turn_at", "created_at")
    statement = select(*(sessions.c[name] for name in shown)).where(sessions.c.user_sub == user_sub)
    if agent_key is not None:
        statement = statement.where(sessions.c.agent_key == agent_key)
    return _page(statement, sessions, before, limit)


def turns_of_sessions(user_sub: str, session_ids: Sequence[UUID], first: int | None) -> Rows:
    """Returns the statement for the sealed turns of these sessions in their order, or for the ``first`` of each."""
    statement = select(turns.c.session_id, turns.c.number, turns.c.payload).where(
        turns.c.user_sub == user_sub, turns.c.session_id.in_(session_ids)
    )
    if first is not None:
        statement = statement.where(turns.c.number <= first)
    return statement.order_by(turns.c.session_id, turns.c.number)


def page_of_audit(user_sub: str, agent_key: str | None, *, before: UUID | None, limit: int) -> Rows:
    """Returns the statement for the newest ``limit`` audit entries older than ``before``."""
    shown = (column for column in audit.c if column is not audit.c.mac)
    statement = select(*shown).where(audit.c.user_sub == user_sub)
    if agent_key is not None:
        statement = statement.where(audit.c.agent_key == agent_key)
    return _page(statement, audit, before, limit)


def _page(statement: Rows, table: Table, before: UUID | None, limit: int) -> Rows:
    if before is not None:
        statement = statement.where(table.c.id < before)
    return statement.order_by(table.c.id.desc()).limit(limit)


def one_profile(user_sub: str, agent_key: str) -> Rows:
    """Returns the statement for a profile's settings."""
    return select(profiles).where(profiles.c.user_sub == user_sub, profiles.c.agent_key == agent_key)


def every_profile(user_sub: str) -> Rows:
    """Returns the statement for the settings of all the user's profiles, by the name of the agent."""
    return select(profiles).where(profiles.c.user_sub == user_sub).order_by(profiles.c.agent_key)


def agents_of(user_sub: str) -> Select[str]:
    """Returns the statement for the names of the user's agents."""
    return select(profiles.c.agent_key).where(profiles.c.user_sub == user_sub).order_by(profiles.c.agent_key)


def agent_used_last(user_sub: str) -> Select[str]:
    """Returns the statement for the user's agent with the newest case, decision or turn; no row without any."""
    newest = [
        select(table.c.agent_key, time.label("at"))
        .where(table.c.user_sub == user_sub)
        .order_by(order.desc())
        .limit(1)
        .subquery()
        for table, time, order in (
            (cases, cases.c.created_at, cases.c.id),
            (decisions, decisions.c.created_at, decisions.c.id),
            (sessions, sessions.c.last_turn_at, sessions.c.last_turn_at),
        )
    ]
    each = union_all(*(select(one.c.agent_key, one.c.at) for one in newest)).subquery()
    return select(each.c.agent_key).order_by(each.c.at.desc(), each.c.agent_key).limit(1)


def cases_by_status(user_sub: str, agent_key: str | None = None) -> Select[str, str, int]:
    """Returns the statement for how many cases a profile has of each status; without an agent those of every one."""
    counts = (
        select(cases.c.agent_key, cases.c.status, func.count().label("cases"))
        .where(cases.c.user_sub == user_sub)
        .group_by(cases.c.agent_key, cases.c.status)
        .order_by(cases.c.agent_key, cases.c.status)
    )
    return counts if agent_key is None else counts.where(cases.c.agent_key == agent_key)


_VERSION = (
    "id",
    "version",
    "agent_key",
    "kind",
    "origin",
    "level",
    "status",
    "pinned",
    "parent_version",
    "task_type",
    "trigger",
    "domain",
    "query_kind",
    "success_score",
    "duration_ms",
    "record",
    "case_id",
    "source_case_ids",
    "occurrences",
    "uses",
    "use_reward",
    "last_used_at",
    "created_at",
)
"""The columns of a version that are shown; its vectors are not."""
REVIEW = ("verdict", "note", "root_cause_right", "steps_complete", "actor", "created_at")
"""The columns of its review, each shown with ``review_`` in front."""


@dataclass(frozen=True, slots=True)
class Measures:
    """Conditions on the run behind a procedure; None lets everything through, unknown values too.

    Attributes:
        query_kind: kind of the run's task.
        min_success_score: least score, 0 to 1.
        max_duration_ms: longest duration of its calls together.
    """

    query_kind: QueryKind | None = None
    min_success_score: float | None = None
    max_duration_ms: float | None = None


@dataclass(frozen=True, slots=True)
class ProcedurePage:
    """Filters of a page of at most ``limit`` procedures older than ``before``; None lets everything through."""

    agent_key: str | None
    kind: str | None
    active_only: bool
    before: UUID | None
    limit: int
    measures: Measures = field(default_factory=Measures)


def _versions() -> Rows:
    """Returns the statement for the versions of procedures as they are shown, each with its review, if it has one."""
    reviewed = and_(
        procedure_reviews.c.user_sub == procedures.c.user_sub,
        procedure_reviews.c.procedure_id == procedures.c.id,
        procedure_reviews.c.version == procedures.c.version,
    )
    named = [procedure_reviews.c[name].label(f"review_{name}") for name in REVIEW]
    shown = [procedures.c[name] for name in _VERSION]
    return select(*shown, *named).select_from(procedures.outerjoin(procedure_reviews, reviewed))


def page_of_procedures(user_sub: str, page: ProcedurePage) -> Rows:
    """Returns the statement for the newest procedures: each one's active version, or else its newest one."""
    active = (procedures.c.status == "active").desc()
    first = (
        _versions()
        .ext(distinct_on(procedures.c.id))
        .where(procedures.c.user_sub == user_sub)
        .order_by(procedures.c.id.desc(), active, procedures.c.version.desc())
    )
    if page.active_only:
        first = first.where(procedures.c.status == "active")
    if page.agent_key is not None:
        first = first.where(procedures.c.agent_key == page.agent_key)
    one = first.subquery()
    statement = select(one).order_by(one.c.id.desc()).limit(page.limit)
    if page.kind is not None:
        statement = statement.where(one.c.kind == page.kind)
    if page.measures.query_kind is not None:
        statement = statement.where(one.c.query_kind == page.measures.query_kind)
    if page.measures.min_success_score is not None:
        statement = statement.where(one.c.success_score >= page.measures.min_success_score)
    if page.measures.max_duration_ms is not None:
        statement = statement.where(one.c.duration_ms <= page.measures.max_duration_ms)
    return statement if page.before is None else statement.where(one.c.id < page.before)


def versions_of(user_sub: str, procedure_id: UUID) -> Rows:
    """Returns the statement for every version of a procedure, the newest first."""
    return (
        _versions()
        .where(procedures.c.user_sub == user_sub, procedures.c.id == procedure_id)
        .order_by(procedures.c.version.desc())
    )


def sample_of_procedures(user_sub: str, agent_key: str | None, *, seed: int, size: int) -> Rows:
    """Returns the statement for a sample of the active versions: the same for a seed while the registry is the same."""
    drawn = func.md5(func.concat(literal(str(seed)), procedures.c.id, procedures.c.version))
    sample = _versions().where(procedures.c.user_sub == user_sub, procedures.c.status == "active")
    if agent_key is not None:
        sample = sample.where(procedures.c.agent_key == agent_key)
    return sample.order_by(drawn, procedures.c.id).limit(size)


def procedure_of(user_sub: str, case_id: UUID) -> Rows:
    """Returns the statement for the kind and record of the fix, or else failure lesson, that a case taught or repeated.

    A script is no such record.
    """
    own = procedures.c.case_id.is_not_distinct_from(case_id)
    return (
        select(procedures.c.kind, procedures.c.record)
        .where(
            procedures.c.user_sub == user_sub,
            or_(own, procedures.c.source_case_ids.contains([case_id])),
            procedures.c.kind != "revision",
            procedures.c.level.is_(None),
        )
        .order_by(own.desc(), procedures.c.kind.desc(), procedures.c.version.desc(), procedures.c.id)
        .limit(1)
    )
