"""Logs which cases of its slate a run used and followed, and decides which run's use counts for the slate.

The slate is the list of cases that a retrieval showed. Several runs may begin with one retrieval: tries of one task, or
its parts. The slate has one reward, and its cases share it by their use in one run: the run whose reward counts.
"""

from collections.abc import Sequence
from uuid import UUID

import numpy as np
from sqlalchemy import REAL, SmallInteger, and_, bindparam, exists, func, or_, select, update
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.ext.asyncio import AsyncConnection

from policy.agreement import agreement
from retrieval.tables.cases import cases
from retrieval.tables.decisions import decision_slots, decisions
from retrieval.tables.kinds import RewardSource, is_trusted


async def speaks_for_slate(
    connection: AsyncConnection, user_sub: str, decision_id: UUID, source: RewardSource | None
) -> bool:
    """Returns whether the newest run of a retrieval decides which cases of the retrieval count as used.

    It does if its reward's source is trusted, or if the reward that the retrieval has is not trusted. The first run
    always decides, even without a reward.
    """
    slot = decision_slots.c
    use_known = or_(slot.used.is_not(None), slot.agreed.is_not(None))
    heard = exists().where(slot.user_sub == user_sub, slot.decision_id == decision_id, use_known)
    mine = decisions.c.user_sub == user_sub, decisions.c.id == decision_id
    statement = select(decisions.c.reward_source, heard.label("heard")).where(*mine)
    decision = (await connection.execute(statement)).one_or_none()
    if decision is None:
        return False
    counts = source is not None and (is_trusted(source) or not is_trusted(decision.reward_source))
    return counts or not decision.heard


async def remember_followed(connection: AsyncConnection, user_sub: str, case_id: UUID) -> None:
    """Logs the cases and procedures that a run used, if its backend named them, and how well plans agree with its plan.

    The agreement with a case of the slate is a number from 0 to 1, see ``agreed_with``; deleted cases have none.
    """
    row, slot = cases.c, decision_slots.c
    columns = select(row.retrieval_id, row.moves, row.used_case_ids, row.used_procedure_ids)
    run = (await connection.execute(columns.where(row.user_sub == user_sub, row.id == case_id))).one()
    mine = slot.user_sub == user_sub, slot.decision_id == run.retrieval_id
    if run.used_case_ids is not None:
        slots = update(decision_slots).where(*mine)
        await connection.execute(slots.values(used=slot.case_id.in_(run.used_case_ids)))
    if run.used_procedure_ids is not None:
        decision = update(decisions).where(decisions.c.user_sub == user_sub, decisions.c.id == run.retrieval_id)
        await connection.execute(decision.values(used_procedure_ids=run.used_procedure_ids))
    shown_cases = (
        select(slot.place, cases.c.moves)
        .join(cases, and_(cases.c.user_sub == slot.user_sub, cases.c.id == slot.case_id))
        .where(*mine)
        .order_by(slot.place)
    )
    shown = (await connection.execute(shown_cases)).all()
    if shown:
        places, agreed = bindparam("places", type_=ARRAY(SmallInteger)), bindparam("agreed", type_=ARRAY(REAL))
        noted = func.unnest(places, agreed).table_valued("place", "agreed", name="noted").render_derived()
        each_slot = update(decision_slots).where(*mine, slot.place == noted.c.place).values(agreed=noted.c.agreed)
        told = agreed_with(run.moves, [row.moves for row in shown])
        await connection.execute(each_slot, {"places": [row.place for row in shown], "agreed": told})


def agreed_with(moves: Sequence[int], shown: Sequence[Sequence[int]]) -> list[float]:
    """Returns the agreement of a run's plan with each shown plan, 0 to 1: the F1 of ``policy.agreement``."""
    plans = [np.array(plan, dtype=np.int32) for plan in (moves, *shown)]
    agreed: list[float] = agreement(plans)[0, 1:].tolist()
    return agreed
