"""The credit that the cases and procedures of a slate earn by its reward, recomputed from the log of decisions."""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.tables.cases import cases
from retrieval.tables.decisions import decision_slots, decisions
from writer.procedures.counters import credit_procedures
from writer.rewards.proof import prove
from writer.rewards.uses import uses


async def credit_slate(connection: AsyncConnection, user_sub: str, decision_id: UUID) -> None:
    """Recomputes the reuse records of all cases and procedures that a retrieval showed, from the log of decisions.

    Called when the retrieval's reward, or the use of its cases, becomes known or changes. Repeating it changes nothing.
    """
    slate = select(decision_slots.c.case_id).where(
        decision_slots.c.user_sub == user_sub,
        decision_slots.c.decision_id == decision_id,
    )
    await credit_cases(connection, user_sub, list((await connection.scalars(slate)).all()))
    shown = select(decisions.c.procedure_ids).where(decisions.c.user_sub == user_sub, decisions.c.id == decision_id)
    await credit_procedures(connection, user_sub, await connection.scalar(shown) or [])


async def credit_cases(connection: AsyncConnection, user_sub: str, case_ids: Sequence[UUID]) -> None:
    """Recomputes the reuse record of these cases, and whether they are proven.

    A case's record is the sum of its shares of rewarded retrievals (``reuse_count``), and the sum of these shares times
    the reward (``reuse_reward``). ``policy.examples.shared_credit`` defines a share; the shares of one retrieval sum
    to 1.
    """
    shares = uses(user_sub, case_ids)
    record = (
        select(
            shares.c.case_id,
            func.sum(shares.c.share).label("reuse_count"),
            func.sum(shares.c.share * shares.c.reward).label("reuse_reward"),
        )
        .where(shares.c.reward.is_not(None), shares.c.case_id.in_(case_ids))
        .group_by(shares.c.case_id)
        .subquery()
    )
    await connection.execute(
        update(cases)
        .where(cases.c.user_sub == user_sub, cases.c.id == record.c.case_id)
        .values(reuse_count=record.c.reuse_count, reuse_reward=record.c.reuse_reward, last_used_at=func.now()),
    )
    await prove(connection, user_sub, case_ids)
