"""What decisions told, forgotten: whoever deletes something takes along the contexts that may quote it."""

from uuid import UUID

from sqlalchemy import update
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.tables.decisions import decisions


async def forget_told(connection: AsyncConnection, user_sub: str, agent_key: str, since: UUID) -> None:
    """Forgets what the agent's decisions told since that row was made; both ids rise with time (UUIDv7).

    Which of them quoted the row is not looked up: a context is kept to explain a slate, and none of them is needed.
    """
    mine = decisions.c.user_sub == user_sub, decisions.c.agent_key == agent_key, decisions.c.id > since
    await connection.execute(update(decisions).where(*mine, decisions.c.told.is_not(None)).values(told=None))
