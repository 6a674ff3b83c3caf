"""A user whose rows the database will not change, whatever the cause may be on a real one."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg


@asynccontextmanager
async def refused_updates(owner: asyncpg.Connection, table: str, user: str, sqlstate: str) -> AsyncIterator[None]:
    """Makes the database refuse updates of the user's rows in the table, with this SQLSTATE, during the block."""
    await owner.execute(
        f"CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS"
        f" $$ BEGIN RAISE EXCEPTION 'refused' USING ERRCODE = '{sqlstate}'; END $$"
    )
    await owner.execute(
        f"CREATE TRIGGER refuse BEFORE UPDATE ON {table} FOR EACH ROW WHEN (OLD.user_sub = '{user}')"
        f" EXECUTE FUNCTION refuse()"
    )
    try:
        yield
    finally:
        await owner.execute("DROP FUNCTION refuse() CASCADE")
