"""The credit that the cases and procedures of a slate earn by its reward, recomputed from the log of decisions.

The log lacks decisions that pruning deleted for their age: before that, ``keep_credit`` adds their shares to columns
that the recomputation starts from. A decision that its user deletes takes its credit away.
"""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import Select, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.tables.cases import cases
from retrieval.tables.decisions import decision_slots, decisions
from writer.procedures.counters import credit_procedures, keep_uses
from writer.rewards.proof import confirmed_uses, prove
from writer.rewards.uses import showed, uses


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
    await _lock(connection, user_sub, case_ids)
    shares = uses(user_sub, showed(user_sub, case_ids))
    rewarded = func.sum(shares.c.share).filter(shares.c.reward.is_not(None))
    record = (
        select(
            shares.c.case_id,
            func.coalesce(rewarded, 0.0).label("reuse_count"),
            func.coalesce(func.sum(shares.c.share * shares.c.reward), 0.0).label("reuse_reward"),
        )
        .where(shares.c.case_id.in_(case_ids))
        .group_by(shares.c.case_id)
        .subquery()
    )
    await connection.execute(
        update(cases)
        .where(cases.c.user_sub == user_sub, cases.c.id == record.c.case_id)
        .values(
            reuse_count=cases.c.kept_count + record.c.reuse_count,
            reuse_reward=cases.c.kept_reward + record.c.reuse_reward,
            last_used_at=func.now(),
        ),
    )
    await prove(connection, user_sub, case_ids)


async def keep_credit(connection: AsyncConnection, user_sub: str, decision_ids: Sequence[UUID]) -> None:
    """Keeps what cases and procedures earned by these decisions; call it before pruning deletes the decisions.

    Records and proofs stay as they are.
    """
    slot = decision_slots.c
    slates = select(slot.case_id).where(slot.user_sub == user_sub, slot.decision_id.in_(decision_ids))
    await _lock(connection, user_sub, slates)
    use = uses(user_sub, decision_ids)
    confirmed, earned = confirmed_uses(use)
    shares = {
        "kept_count": func.sum(use.c.share),
        "kept_reward": func.sum(use.c.share * use.c.reward),
        "kept_confirmed": confirmed,
        "kept_earned": earned,
    }
    record = (
        select(use.c.case_id, *(share.label(name) for name, share in shares.items()))
        .where(use.c.reward.is_not(None))
        .group_by(use.c.case_id)
        .subquery()
    )
    await connection.execute(
        update(cases)
        .where(cases.c.user_sub == user_sub, cases.c.id == record.c.case_id)
        .values({name: cases.c[name] + record.c[name] for name in shares} | {"updated_at": cases.c.updated_at})
    )
    await keep_uses(connection, user_sub, decision_ids)


async def _lock(connection: AsyncConnection, user_sub: str, case_ids: Select[UUID] | Sequence[UUID]) -> None:
    """Locks these cases in a fixed order, so that no decision counts twice: in the log, and in what is kept of it."""
    rows = select(cases.c.id).where(cases.c.user_sub == user_sub, cases.c.id.in_(case_ids))
    await connection.execute(rows.order_by(cases.c.id).with_for_update())
