"""Asks the worker to reflect on runs: to revise the procedures that they used, since they turned out to have failed."""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import func, select
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.tables.cases import cases
from retrieval.tables.procedures import reflections


async def ask_to_reflect(connection: AsyncConnection, user_sub: str, case_ids: Sequence[UUID]) -> None:
    """Queues those of these cases whose run used a procedure, each once in its life.

    A case that the worker has not finished is left out: it revises the procedures itself, or asks for it at the end.
    """
    names = "user_sub", "id", "agent_key"
    used = select(*(cases.c[name] for name in names)).where(
        cases.c.user_sub == user_sub,
        cases.c.id.in_(case_ids),
        cases.c.status.not_in(["pending", "dead"]),
        func.cardinality(cases.c.used_procedure_ids) > 0,
    )
    await connection.execute(upsert(reflections).from_select(names, used).on_conflict_do_nothing())
