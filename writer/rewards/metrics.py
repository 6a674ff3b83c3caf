"""Counts shown cases in the metrics, by use and reward, once for each retrieval: when it is first rewarded."""

from collections.abc import Sequence
from itertools import product
from uuid import UUID

from prometheus_client import Counter
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.tables.decisions import decision_slots
from retrieval.tables.kinds import FAILED_BELOW

JUDGED = Counter(
    "casebank_cases_judged_total",
    "Cases shown by decisions that were rewarded: whether they were used, as far as was said, and what the reward was",
    ["use", "reward"],
)
USES = {True: "used", False: "unused", None: "unsaid"}
for _use, _reward in product(USES.values(), ("good", "bad")):
    JUDGED.labels(_use, _reward)  # so that a ratio of them is there before each was met


async def count_judged(connection: AsyncConnection, user_sub: str, decision_id: UUID, reward: float) -> None:
    """Counts a retrieval's shown cases in the metrics, by use and by its first reward (good: at least 0.5)."""
    slot = decision_slots.c
    shown = select(slot.used).where(slot.user_sub == user_sub, slot.decision_id == decision_id)
    uses: Sequence[bool | None] = (await connection.scalars(shown.order_by(slot.place))).all()
    for used in uses:
        JUDGED.labels(USES[used], "bad" if reward < FAILED_BELOW else "good").inc()
