"""Settles the advice of a finished run: whether the failure came back, and the reward of the decision."""

from collections.abc import Collection, Sequence
from uuid import UUID

from sqlalchemy import ColumnElement, and_, exists, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.sealed import SIGN
from retrieval.tables.decisions import decision_slots, decisions
from retrieval.tables.failures import advice
from retrieval.tables.runs import runs
from writer.analysis.fixes import RunFailure
from writer.privacy.words import Words


async def advised(
    connection: AsyncConnection, user_sub: str, case_ids: Collection[UUID], retrieval_ids: Collection[UUID]
) -> tuple[set[UUID], set[UUID]]:
    """Returns the cases and the retrievals among these whose runs were given advice that is not settled."""
    joined = and_(runs.c.user_sub == advice.c.user_sub, runs.c.id == advice.c.run_id)
    open_advice = (
        select(runs.c.case_id, advice.c.retrieval_id)
        .select_from(advice.outerjoin(runs, joined))
        .where(
            advice.c.user_sub == user_sub,
            advice.c.came_back.is_(None),
            or_(runs.c.case_id.in_(case_ids), advice.c.retrieval_id.in_(retrieval_ids)),
        )
    )
    rows = (await connection.execute(open_advice)).all()
    return {row.case_id for row in rows}, {row.retrieval_id for row in rows}


async def settle_advice(
    connection: AsyncConnection,
    words: Words,
    case_id: UUID,
    retrieval_id: UUID | None,
    failures: Sequence[RunFailure],
) -> None:
    """Writes of each advice that the run was given whether its failure came back, and rewards what was told.

    An agent asks once for each failed call, so the failure came back after the nth advice at one sign if more than n
    calls failed like it. Advice that was told has the reward 1 if the failure stayed away, else 0.
    """
    run_id = select(runs.c.id).where(runs.c.user_sub == words.user_sub, runs.c.case_id == case_id)
    asked: list[ColumnElement[bool]] = [advice.c.run_id.in_(run_id)]
    if retrieval_id is not None:
        asked.append(advice.c.retrieval_id == retrieval_id)
    shown = decision_slots.c.user_sub == words.user_sub, decision_slots.c.decision_id == advice.c.decision_id
    given = (
        select(advice.c.decision_id, advice.c.sign, exists().where(*shown).label("told"))
        .where(advice.c.user_sub == words.user_sub, or_(*asked), advice.c.came_back.is_(None))
        .order_by(advice.c.decision_id)
    )
    rows = (await connection.execute(given)).all()
    if not rows:
        return
    calls: dict[int, int] = {}
    for failure, sign in zip(failures, words.numbers(SIGN, [each.sign.line for each in failures]), strict=True):
        calls[sign] = calls.get(sign, 0) + failure.calls
    asked_before: dict[int, int] = {}
    for row in rows:
        asked_before[row.sign] = asked_before.get(row.sign, 0) + 1
        came_back = calls.get(row.sign, 0) > asked_before[row.sign]
        mine = advice.c.user_sub == words.user_sub, advice.c.decision_id == row.decision_id
        await connection.execute(update(advice).where(*mine).values(came_back=came_back))
        if row.told:
            reward = {"reward": 0.0 if came_back else 1.0, "reward_source": "heuristic"}
            of_it = decisions.c.user_sub == words.user_sub, decisions.c.id == row.decision_id
            await connection.execute(update(decisions).where(*of_it, decisions.c.reward.is_(None)).values(reward))
