"""Deletion of stored context texts: after a deletion, the contexts that may quote the deleted row go too."""

from uuid import UUID

from sqlalchemy import update
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.tables.decisions import decisions


async def forget_contexts(connection: AsyncConnection, user_sub: str, agent_key: str, since: UUID) -> None:
    """Deletes the context texts of the agent's decisions that are newer than a row; ids rise with time (UUIDv7).

    All of them go, without a check which ones quote the row: a context is kept only to explain a slate.
    """
    mine = decisions.c.user_sub == user_sub, decisions.c.agent_key == agent_key, decisions.c.id > since
    await connection.execute(update(decisions).where(*mine, decisions.c.told.is_not(None)).values(told=None))
