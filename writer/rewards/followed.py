"""Whether a run did what the cases that it was shown did: which of them it followed, whatever its backend says."""

from collections.abc import Sequence
from typing import Protocol
from uuid import UUID

from sqlalchemy import REAL, SmallInteger, Update, and_, func, select, update
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.sql import bindparam

from policy.evidence import agreement
from retrieval.database.rows import Rows
from retrieval.ranking.tool_counts import RunRecord, tool_counts
from retrieval.schema import cases, decision_slots


class FollowingRun(RunRecord, Protocol):
    """A finished run, and the retrieval that it began with."""

    @property
    def retrieval_id(self) -> UUID | None:
        """None: it was shown nothing."""


async def remember_agreed(connection: AsyncConnection, user_sub: str, run: FollowingRun) -> None:
    """Notes in the log, for each case of the run's slate, how well the run's plan agrees with the case's.

    A case that is gone has nothing to agree with.
    """
    shown = (await connection.execute(_shown(user_sub, run.retrieval_id))).all()
    if shown:
        noted = {"places": [row.place for row in shown], "agreed": agreed_with(run, shown)}
        await connection.execute(_noted(user_sub, run.retrieval_id), noted)


def agreed_with(run: RunRecord, shown: Sequence[RunRecord]) -> list[float]:
    """Returns how well the run's plan agrees with each that was shown, 0 to 1: the F1 of ``policy.evidence.agreement``.

    Plans are compared by the tools that changed something, or, where all used one tool, by the steps of their plans.
    """
    counts = tool_counts([run, *shown]).counts
    agreed: list[float] = agreement(counts[:1], counts[1:])[0].tolist()
    return agreed


def _shown(user_sub: str, decision_id: UUID | None) -> Rows:
    slot = decision_slots.c
    return (
        select(slot.place, cases.c.effects, cases.c.plan)
        .join(cases, and_(cases.c.user_sub == slot.user_sub, cases.c.id == slot.case_id))
        .where(slot.user_sub == user_sub, slot.decision_id == decision_id)
        .order_by(slot.place)
    )


def _noted(user_sub: str, decision_id: UUID | None) -> Update:
    slot = decision_slots.c
    places, agreed = bindparam("places", type_=ARRAY(SmallInteger)), bindparam("agreed", type_=ARRAY(REAL))
    noted = func.unnest(places, agreed).table_valued("place", "agreed", name="noted").render_derived()
    return (
        update(decision_slots)
        .where(slot.user_sub == user_sub, slot.decision_id == decision_id, slot.place == noted.c.place)
        .values(agreed=noted.c.agreed)
    )
