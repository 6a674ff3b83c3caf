"""Statements that read pages of a bank's rows and single ones: cases, facts, knowledge, runs, sessions, the audit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, FromClause, Row, Select, Table, Uuid, and_, case, cast, func, select, union_all
from sqlalchemy.dialects.postgresql import ARRAY, aggregate_order_by, array
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.database.rows import Rows
from retrieval.errors import NotFound
from retrieval.tables.audit import audit
from retrieval.tables.cases import cases
from retrieval.tables.columns import columns_of
from retrieval.tables.decisions import decision_slots, decisions
from retrieval.tables.memories import facts, knowledge, shared_knowledge
from retrieval.tables.procedures import reflections
from retrieval.tables.profiles import profiles
from retrieval.tables.runs import run_steps, runs
from retrieval.tables.sessions import sessions, turns

_SHOWN = {
    audit: "id agent_key actor action subject_id payload created_at",
    cases: """
    id agent_key kind parent_case_id status task plan words tools tags outcome reward reward_source step_count
    error_count occurrences merged_into retrieval_id used_procedure_ids reuse_count reuse_reward attempts last_error
    created_at updated_at
    """,
    facts: """
    id agent_key kind category words about_from about_to origin said_by turn_number case_id told last_told_at valid_from
    valid_to superseded_by created_at
    """,
    knowledge: "id agent_key category entry_type words created_at updated_at",
    runs: "id agent_key status words retrieval_id step_count last_step_at ended_at case_id created_at",
    sessions: "id name agent_key turn_count last_turn_at created_at",
    shared_knowledge: "id category entry_type title text",
}
"""Columns that are shown, by table; sealed payloads, search vectors, keyed hashes and MACs are not among them."""


_SLATE = (
    select(func.array_agg(aggregate_order_by(decision_slots.c.case_id, decision_slots.c.place)))
    .where(decision_slots.c.user_sub == cases.c.user_sub, decision_slots.c.decision_id == cases.c.retrieval_id)
    .scalar_subquery()
)
_LESSON = (
    select(reflections.c.status)
    .where(reflections.c.user_sub == cases.c.user_sub, reflections.c.id == cases.c.id, reflections.c.is_new)
    .scalar_subquery()
)
_OF_CASE = (
    func.coalesce(cases.c.used_case_ids, _SLATE, cast(array([]), ARRAY(Uuid))).label("reference_case_ids"),
    case((cases.c.status.in_(["pending", "dead"]), cases.c.status), else_=func.coalesce(_LESSON, "ready")).label(
        "lessons"
    ),
)
"""Further columns of a case.

``reference_case_ids``: cases that the run reported as used, or else those of its slate; ``lessons``: whether the worker
learned from the run, "ready", or still will, or gave up.
"""


def shown(table: Table) -> Rows:
    """Returns the statement for the rows of a table as they are shown.

    A case or a fact has the name of its session as ``session_id``; NULL if it has none.
    """
    columns: list[ColumnElement[Any]] = [*columns_of(table, _SHOWN[table])]
    if "session_id" in table.c:
        named = sessions.c.user_sub == table.c.user_sub, sessions.c.id == table.c.session_id
        columns.append(select(sessions.c.name).where(*named).scalar_subquery().label("session_id"))
    return select(*columns, *(_OF_CASE if table is cases else ()))


def one_of(table: Table, user_sub: str, row_id: UUID) -> Rows:
    """Returns the statement for the user's row with this id."""
    return shown(table).where(table.c.user_sub == user_sub, table.c.id == row_id)


def page_of(table: Table, user_sub: str, only: Mapping[str, object], *, before: UUID | None, limit: int) -> Rows:
    """Returns the statement for the user's newest ``limit`` rows whose id is below ``before``; see ``paged``."""
    return paged(shown(table), table, {"user_sub": user_sub, **only}, before, limit)


def paged(statement: Rows, table: FromClause, only: Mapping[str, object], before: UUID | None, limit: int) -> Rows:
    """Returns the statement for its newest ``limit`` rows whose id is below ``before``; ids rise with time (UUIDv7).

    ``only`` has, by column, the values that a row must have; None: any value.
    """
    wanted = [table.c[name] == value for name, value in only.items() if value is not None]
    if before is not None:
        wanted.append(table.c.id < before)
    return statement.where(*wanted).order_by(table.c.id.desc()).limit(limit)


def steps_of_run(user_sub: str, run_id: UUID, numbers: Sequence[int] | None = None) -> Select[int, bytes]:
    """Returns the statement for the steps of a run in their order: for those of these numbers, or (None) for all."""
    steps = select(run_steps.c.number, run_steps.c.payload).where(
        run_steps.c.user_sub == user_sub, run_steps.c.run_id == run_id
    )
    if numbers is not None:
        steps = steps.where(run_steps.c.number.in_(numbers))
    return steps.order_by(run_steps.c.number)


def turns_of_sessions(user_sub: str, session_ids: Sequence[UUID], first: int | None) -> Rows:
    """Returns the statement for the sealed turns of these sessions in their order.

    ``first`` is the largest number of turns of each session, counted from its first; None: all turns.
    """
    statement = select(turns.c.session_id, turns.c.number, turns.c.said_at, turns.c.payload).where(
        turns.c.user_sub == user_sub, turns.c.session_id.in_(session_ids)
    )
    if first is not None:
        statement = statement.where(turns.c.number <= first)
    return statement.order_by(turns.c.session_id, turns.c.number)


def turns_to_come(user_sub: str, agent_key: str, name: str, most: int) -> Rows:
    """Returns the statement for a session's newest ``most`` sealed turns that are no part of a run yet."""
    of_session = and_(turns.c.user_sub == sessions.c.user_sub, turns.c.session_id == sessions.c.id)
    named = sessions.c.user_sub == user_sub, sessions.c.agent_key == agent_key, sessions.c.name == name
    statement = select(turns.c.session_id, turns.c.number, turns.c.payload).join(sessions, of_session)
    return statement.where(*named, turns.c.number > sessions.c.taken_turns).order_by(turns.c.number.desc()).limit(most)


@dataclass(frozen=True, slots=True)
class Span:
    """Span of time of decisions: at most ``most``, the newest, from ``since`` to before ``until``; None: no bound."""

    most: int
    since: datetime | None = None
    until: datetime | None = None

    def holds(self, time: ColumnElement[datetime]) -> list[ColumnElement[bool]]:
        """Returns the conditions that a time lies within the span's bounds."""
        since = [] if self.since is None else [time >= self.since]
        return since if self.until is None else [*since, time < self.until]


def one_profile(user_sub: str, agent_key: str) -> Rows:
    """Returns the statement for the settings of the profile of this user and agent."""
    return select(profiles).where(profiles.c.user_sub == user_sub, profiles.c.agent_key == agent_key)


async def known_profile(connection: AsyncConnection, user_sub: str, agent_key: str) -> Row[Any]:
    """Returns the settings of the profile of this user and agent.

    Raises:
        NotFound: there is no such profile; the message names the user's agents, 20 at most.
    """
    profile = (await connection.execute(one_profile(user_sub, agent_key))).one_or_none()
    if profile is None:
        agents = (await connection.scalars(agents_of(user_sub).limit(20))).all()
        known = f"the agents of this user are {', '.join(agents)}" if agents else "this user has no agent"
        raise NotFound(f"no such profile: {known}")
    return profile


def every_profile(user_sub: str) -> Rows:
    """Returns the statement for the settings of all the user's profiles, in the order of the agents' names."""
    return select(profiles).where(profiles.c.user_sub == user_sub).order_by(profiles.c.agent_key)


def agents_of(user_sub: str) -> Select[str]:
    """Returns the statement for the names of the user's agents."""
    return select(profiles.c.agent_key).where(profiles.c.user_sub == user_sub).order_by(profiles.c.agent_key)


def agent_used_last(user_sub: str) -> Select[str]:
    """Returns the statement for the user's agent with the newest case, decision or turn; no row if there is none."""
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
    """Returns the statement for the number of cases of each status in a profile, or in each profile of the user."""
    counts = (
        select(cases.c.agent_key, cases.c.status, func.count().label("cases"))
        .where(cases.c.user_sub == user_sub)
        .group_by(cases.c.agent_key, cases.c.status)
        .order_by(cases.c.agent_key, cases.c.status)
    )
    return counts if agent_key is None else counts.where(cases.c.agent_key == agent_key)
