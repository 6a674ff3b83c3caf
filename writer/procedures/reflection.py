"""Asks the worker to reflect on runs that a later reward shows to have failed: to revise the procedures they used."""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import func, select
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.tables.cases import cases
from retrieval.tables.procedures import reflections


async def ask_to_reflect(connection: AsyncConnection, user_sub: str, case_ids: Sequence[UUID]) -> None:
    """Queues for reflection those of these cases whose run used a procedure; a case is never queued twice.

    A case that the worker has not finished yet is left out, because finishing it revises its procedures.
    """
    names = "user_sub", "id", "agent_key"
    used = select(*(cases.c[name] for name in names)).where(
        cases.c.user_sub == user_sub,
        cases.c.id.in_(case_ids),
        cases.c.status.not_in(["pending", "dead"]),
        func.cardinality(cases.c.used_procedure_ids) > 0,
    )
    await connection.execute(upsert(reflections).from_select(names, used).on_conflict_do_nothing())
