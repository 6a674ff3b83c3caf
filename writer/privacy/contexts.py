"""Deletes texts in the log of decisions that may quote a row, after that row was deleted or its text changed."""

from uuid import UUID

from sqlalchemy import ColumnElement, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.ranking.decisions import CONTEXTS
from retrieval.tables.columns import ALL_AGENTS
from retrieval.tables.decisions import decisions
from retrieval.tables.failures import advice

APART_MS = 3_600_000
"""Milliseconds by which the clocks of two servers may differ, or one clock may have been put back: an hour."""
BLANK = {"query": "", "rewritten": None, "words": None, "told": None}
"""Values of a decision's columns that blank its texts."""


async def forget_contexts(connection: AsyncConnection, user_sub: str, agent_key: str, since: UUID) -> None:
    """Deletes the context texts of the agent's decisions that may be newer than a row; ids rise with time (UUIDv7).

    Those of the last APART_MS before the row count as newer. All of them are deleted, whether they quote the row or
    not, because a context is kept only to explain a slate; those of searches of all agents, too. Waits for retrievals
    that log a context; those that log one later keep no text, until the transaction ends.
    """
    lock = func.pg_advisory_xact_lock(func.hashtextextended(user_sub, CONTEXTS))
    await connection.execute(select(lock))
    may_quote = decisions.c.agent_key.in_([agent_key, ALL_AGENTS])
    newer = decisions.c.id > UUID(int=max(0, since.int - (APART_MS << 80)))  # its first 48 bits are the milliseconds
    mine = decisions.c.user_sub == user_sub, may_quote, newer
    await connection.execute(update(decisions).where(*mine, decisions.c.told.is_not(None)).values(told=None))


async def forget_advice(connection: AsyncConnection, user_sub: str, given: ColumnElement[bool]) -> None:
    """Blanks the query and the text, which quote errors, of the user's advice that matches a condition."""
    advised = select(advice.c.decision_id).where(advice.c.user_sub == user_sub, given)
    mine = decisions.c.user_sub == user_sub, decisions.c.id.in_(advised)
    await connection.execute(update(decisions).where(*mine).values(BLANK))
