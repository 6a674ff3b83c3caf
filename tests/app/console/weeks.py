"""Weeks of rewarded decisions in which memory helped, made up, so that there is a curve to see."""

import json
from datetime import datetime, timedelta
from uuid import UUID

import numpy as np
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

WEEKS, A_WEEK = 10, 120
EMPTY_CHANCE, EASE, UPLIFT = 0.1, 0.5, 0.2

_NEWEST = (
    "SELECT d FROM decisions d WHERE user_sub = :user_sub AND agent_key = :agent AND cardinality(candidate_ids) > 0"
    " ORDER BY id DESC LIMIT 1"
)
_DECISIONS = text(
    f"WITH newest AS ({_NEWEST}) INSERT INTO decisions SELECT made.*"  # noqa: S608 - our own words
    " FROM newest, jsonb_array_elements(CAST(:rows AS jsonb)) AS row, jsonb_populate_record(newest.d, row) AS made"
)
_SLOTS = text(
    "INSERT INTO decision_slots (user_sub, decision_id, place, case_id, propensity)"
    " SELECT user_sub, id, 1, candidate_ids[1], slate_propensity FROM decisions"
    " WHERE user_sub = :user_sub AND id = ANY(CAST(:told AS uuid[]))"
)


async def add_weeks(connection: AsyncConnection, user_sub: str, agent: str, until: datetime) -> None:
    """Adds decisions that are like the newest one with a candidate: a tenth of them left empty by the lot."""
    rng = np.random.default_rng(7)
    rows, told = [], []
    for number in range(WEEKS * A_WEEK):
        at = until - timedelta(weeks=WEEKS) * (1 - number / (WEEKS * A_WEEK))
        shown = bool(rng.random() >= EMPTY_CHANCE)
        rewarded = bool(rng.random() < EASE + UPLIFT * shown)
        chance = 1 - EMPTY_CHANCE if shown else EMPTY_CHANCE
        decision_id = UUID(int=(int(at.timestamp() * 1000) << 80) | (7 << 76) | (2 << 62) | number)
        told += [str(decision_id)] if shown else []
        row = {"id": str(decision_id), "created_at": at.isoformat(), "reward": int(rewarded), "query_group": number}
        rows.append(row | {"slate_propensity": chance, "reward_source": "metric"})
    await connection.execute(_DECISIONS, {"user_sub": user_sub, "agent": agent, "rows": json.dumps(rows)})
    await connection.execute(_SLOTS, {"user_sub": user_sub, "told": told})
