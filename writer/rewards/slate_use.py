"""Logs which cases of its slate a run used and followed, and decides which run's use counts for the slate.

Several runs may begin with one retrieval: tries of one task, or its parts. The slate has one reward, and its cases
share it by what one run made of them: the one whose reward counts.
"""

from collections.abc import Collection, Sequence
from typing import Protocol
from uuid import UUID

from sqlalchemy import REAL, Select, SmallInteger, Update, and_, any_, exists, func, or_, select, update
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.sql import bindparam

from policy.evidence import agreement
from retrieval.database.rows import Rows
from retrieval.ranking.tool_counts import RunRecord, tool_counts
from retrieval.tables.cases import cases
from retrieval.tables.decisions import decision_slots, decisions
from retrieval.tables.kinds import RewardSource, is_trusted


class FollowingRun(RunRecord, Protocol):
    """A finished run, the retrieval that it began with, and what its backend said that it used."""

    @property
    def retrieval_id(self) -> UUID | None:
        """The retrieval that the run began with; None: it was shown no case."""

    @property
    def used_case_ids(self) -> Sequence[UUID] | None:
        """Cases of the slate that it used; None: the backend did not say."""

    @property
    def used_procedure_ids(self) -> Sequence[UUID] | None:
        """Procedures that it used; None: the backend did not say."""


async def speaks_for_slate(
    connection: AsyncConnection, user_sub: str, decision_id: UUID, source: RewardSource | None
) -> bool:
    """Returns whether a run of this retrieval with a reward of this source, the newest, is the one whose reward counts.

    Before any run was heard, whichever comes first speaks, be it without a reward.
    """
    decision = (await connection.execute(_heard(user_sub, decision_id))).one_or_none()
    if decision is None:
        return False
    counts = source is not None and (is_trusted(source) or not is_trusted(decision.reward_source))
    return counts or not decision.heard


async def remember_followed(connection: AsyncConnection, user_sub: str, run: FollowingRun) -> None:
    """Notes in the log what of its slate the run used, if its backend said so, and how well its plan agrees with each.

    A case that is gone has nothing to agree with.
    """
    mine = decision_slots.c.user_sub == user_sub, decision_slots.c.decision_id == run.retrieval_id
    if run.used_case_ids is not None:
        slots = update(decision_slots).where(*mine)
        await connection.execute(slots.values(used=decision_slots.c.case_id.in_(run.used_case_ids)))
    if run.used_procedure_ids is not None:
        decision = update(decisions).where(decisions.c.user_sub == user_sub, decisions.c.id == run.retrieval_id)
        await connection.execute(decision.values(used_procedure_ids=list(run.used_procedure_ids)))
    shown = (await connection.execute(_shown(user_sub, run.retrieval_id))).all()
    if shown:
        tools = (await connection.scalars(_tools(user_sub, run.retrieval_id))).all()
        noted = {"places": [row.place for row in shown], "agreed": agreed_with(run, shown, tools)}
        await connection.execute(_noted(user_sub, run.retrieval_id), noted)


async def remember_followed_by(connection: AsyncConnection, user_sub: str, case_id: UUID) -> None:
    """Notes the same of the run that this case was retained from."""
    row = cases.c
    run = select(row.retrieval_id, row.effects, row.plan, row.used_case_ids, row.used_procedure_ids)
    row_of_run = (await connection.execute(run.where(row.user_sub == user_sub, row.id == case_id))).one()
    await remember_followed(connection, user_sub, row_of_run)


def agreed_with(run: RunRecord, shown: Sequence[RunRecord], beside: Collection[str] = ()) -> list[float]:
    """Returns the agreement of the run's plan with each shown one, 0 to 1: the F1 of ``policy.evidence.agreement``.

    Plans are compared by the tools that changed something, or, where all used one tool, by the steps of their plans.
    Beside: the tools of all the candidates, so that plans are compared as they were when the slate was chosen.
    """
    counts = tool_counts([run, *shown], beside).counts
    agreed: list[float] = agreement(counts[:1], counts[1:])[0].tolist()
    return agreed


def _heard(user_sub: str, decision_id: UUID) -> Select[RewardSource | None, bool]:
    """Returns the statement for the source of the decision's reward, and whether a run was heard about its slate."""
    slot = decision_slots.c
    use_known = or_(slot.used.is_not(None), slot.agreed.is_not(None))
    heard = exists().where(slot.user_sub == user_sub, slot.decision_id == decision_id, use_known)
    mine = decisions.c.user_sub == user_sub, decisions.c.id == decision_id
    return select(decisions.c.reward_source, heard.label("heard")).where(*mine)


def _shown(user_sub: str, decision_id: UUID | None) -> Rows:
    slot = decision_slots.c
    return (
        select(slot.place, cases.c.effects, cases.c.plan)
        .join(cases, and_(cases.c.user_sub == slot.user_sub, cases.c.id == slot.case_id))
        .where(slot.user_sub == user_sub, slot.decision_id == decision_id)
        .order_by(slot.place)
    )


def _tools(user_sub: str, decision_id: UUID | None) -> Select[str]:
    """Returns the statement for the tools that changed something in the candidates' runs."""
    among = and_(cases.c.user_sub == decisions.c.user_sub, cases.c.id == any_(decisions.c.candidate_ids))
    mine = decisions.c.user_sub == user_sub, decisions.c.id == decision_id
    return select(func.unnest(cases.c.effects)).join_from(decisions, cases, among).where(*mine).distinct()


def _noted(user_sub: str, decision_id: UUID | None) -> Update:
    slot = decision_slots.c
    places, agreed = bindparam("places", type_=ARRAY(SmallInteger)), bindparam("agreed", type_=ARRAY(REAL))
    noted = func.unnest(places, agreed).table_valued("place", "agreed", name="noted").render_derived()
    return (
        update(decision_slots)
        .where(slot.user_sub == user_sub, slot.decision_id == decision_id, slot.place == noted.c.place)
        .values(agreed=noted.c.agreed)
    )
