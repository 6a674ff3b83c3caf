"""Weeks of rewarded decisions in which memory helped, made up, so that there is a curve to see."""

from datetime import datetime, timedelta
from uuid import UUID

import numpy as np
from sqlalchemy import func, insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.tables.decisions import decision_slots, decisions

WEEKS, A_WEEK = 10, 120
EMPTY_CHANCE, EASE, UPLIFT = 0.1, 0.5, 0.2


async def add_weeks(connection: AsyncConnection, user_sub: str, agent: str, until: datetime) -> None:
    """Adds decisions that are like the newest one with a candidate: a tenth of them left empty by the lot."""
    rng = np.random.default_rng(7)
    theirs = (decisions.c.user_sub == user_sub, decisions.c.agent_key == agent)
    with_candidate = select(decisions).where(*theirs, func.cardinality(decisions.c.candidate_ids) > 0)
    newest = (await connection.execute(with_candidate.order_by(decisions.c.id.desc()).limit(1))).mappings().one()
    rows, slots = [], []
    for number in range(WEEKS * A_WEEK):
        at = until - timedelta(weeks=WEEKS) * (1 - number / (WEEKS * A_WEEK))
        shown = bool(rng.random() >= EMPTY_CHANCE)
        rewarded = bool(rng.random() < EASE + UPLIFT * shown)
        chance = 1 - EMPTY_CHANCE if shown else EMPTY_CHANCE
        decision_id = UUID(int=(int(at.timestamp() * 1000) << 80) | (7 << 76) | (2 << 62) | number)
        row = {"id": decision_id, "created_at": at, "reward": int(rewarded), "query_group": number}
        rows.append(dict(newest) | row | {"slate_propensity": chance, "reward_source": "metric"})
        slot = {"user_sub": user_sub, "decision_id": decision_id, "place": 1, "case_id": newest["candidate_ids"][0]}
        slots += [slot | {"propensity": chance}] if shown else []
    await connection.execute(insert(decisions), rows)
    await connection.execute(insert(decision_slots), slots)
