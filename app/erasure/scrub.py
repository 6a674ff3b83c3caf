"""The scrub: rewrites what deleted rows were in and makes the server drop its log, as the owner of the tables.

Every table is locked while it is rewritten, one after the other; a table that somebody holds is tried again for a
while. Nothing is lost if it breaks off: each table is rewritten whole or not at all, and a repeat does all of it again.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime

import asyncpg
from sqlalchemy.engine import make_url

from retrieval.errors import CasebankError
from retrieval.schema import USER_TABLES, erasures
from writer.rights.places import Log

TABLES = (*(table.name for table in USER_TABLES), erasures.name)
CATALOGS = ("pg_statistic",)
"""Of the server's own tables, those in which samples of users' rows were."""

LOCK_TIMEOUT_MS = 5_000
PATIENCE_S = 120.0
"""How long to try for a table, and how long to wait for transactions that began before."""
POLL_S = 0.5
MOST_SEGMENTS = 4_096
"""Of the log, 64 GiB: more than any server keeps for itself."""


class ScrubRefused(CasebankError):
    """The scrub did not go through; the text says what is in the way. What it did is done, and it can be repeated."""


@dataclass(frozen=True, slots=True)
class Rewritten:
    """What a scrub did to the database.

    Attributes:
        began_at: by the database's clock.
        tables: rewritten.
        log: what became of the server's log.
    """

    began_at: datetime
    tables: int
    log: Log


Progress = Callable[[str], None]
"""Called with what is to be done next."""


async def scrub(url: str, progress: Progress, patience_s: float = PATIENCE_S) -> Rewritten:
    """Rewrites every table that held users' rows, and makes the server drop the log before that, where it may.

    Args:
        url: logs in as the owner of the tables; a superuser can have the log dropped as well.
        progress: is told of each step.
        patience_s: for a table that somebody holds, and for old transactions.

    Raises:
        ScrubRefused: the login owns no table, a table stays in use, or an old transaction still sees what was deleted.
    """
    async with _connected(url) as owner:
        await _refuse_stranger(owner)
        began_at = await owner.fetchval("SELECT clock_timestamp()")
        progress("gathering statistics")
        await owner.execute("SELECT casebank_gather_statistics()")  # first: the old ones are dead rows, too
        await _wait_for_old_transactions(owner, progress, patience_s)
        for table in (*TABLES, *CATALOGS):
            progress(f"rewriting {table}")
            await _rewrite(owner, table, patience_s)
        log = await _drop_log(owner, progress)
    return Rewritten(began_at, len(TABLES), log)


@asynccontextmanager
async def _connected(url: str) -> AsyncIterator[asyncpg.Connection]:
    address = make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
    connection = await asyncpg.connect(address, server_settings={"application_name": "casebank scrub"})
    try:
        await connection.execute(f"SET lock_timeout = {LOCK_TIMEOUT_MS}")
        yield connection
    finally:
        await connection.close()


async def _refuse_stranger(owner: asyncpg.Connection) -> None:
    """Refuses a login that does not own the tables: VACUUM would only warn, and leave them."""
    mine = "SELECT bool_and(pg_has_role(current_user, relowner, 'USAGE')) FROM pg_class WHERE oid = ANY($1::regclass[])"
    if not await owner.fetchval(mine, list(TABLES)):
        raise ScrubRefused("the login of DATABASE_URL does not own the tables: scrub with the one that migrates")


_OLDER = """
SELECT format('process %s of %s', pid, coalesce(nullif(application_name, ''), usename)) AS who
FROM pg_stat_activity
WHERE pid <> pg_backend_pid() AND coalesce(datname, current_database()) = current_database()
  AND greatest(age(backend_xmin), age(backend_xid)) > age($1::xid)
UNION ALL
SELECT format('prepared transaction %s', gid) FROM pg_prepared_xacts
WHERE database = current_database() AND age(transaction) > age($1::xid)
UNION ALL
SELECT format('replication slot %s', slot_name) FROM pg_replication_slots
WHERE greatest(age(xmin), age(catalog_xmin)) > age($1::xid)
"""


async def _wait_for_old_transactions(owner: asyncpg.Connection, progress: Progress, patience_s: float) -> None:
    """Waits for whoever may still see what was deleted before now: for them a rewrite would keep it."""
    now = await owner.fetchval("SELECT pg_current_xact_id()::xid")
    deadline = time.monotonic() + patience_s
    while older := [row["who"] for row in await owner.fetch(_OLDER, now)]:
        if time.monotonic() > deadline:
            raise ScrubRefused(f"{older[0]} still sees what was deleted: end it, and repeat the scrub")
        progress(f"waiting for {older[0]}")
        await asyncio.sleep(POLL_S)


async def _rewrite(owner: asyncpg.Connection, table: str, patience_s: float) -> None:
    deadline = time.monotonic() + patience_s
    while True:
        try:
            await owner.execute(f"VACUUM (FULL) {table}")
        except (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError):
            if time.monotonic() > deadline:
                raise ScrubRefused(f"{table} stays in use: repeat the scrub when less is going on") from None
            await asyncio.sleep(POLL_S)
        else:
            return


async def _drop_log(owner: asyncpg.Connection, progress: Progress) -> Log:
    """Makes the server remove every segment of the log before the present one, where it may and nothing keeps them.

    A segment that is kept for later keeps what is in it: none is kept meanwhile, and those that were are used up.
    """
    if not await owner.fetchval("SELECT rolsuper FROM pg_roles WHERE rolname = current_user"):
        return Log(None, "the login may not make the server drop it: that takes a superuser")
    progress("dropping the log")
    now = await owner.fetchval("SELECT pg_walfile_name(pg_current_wal_insert_lsn())")
    await owner.execute("ALTER SYSTEM SET wal_recycle = off")
    try:
        await owner.execute("SELECT pg_reload_conf()")
        await _use_up_segments(owner)
        for _ in range(2):  # one that was under way may have begun before
            await owner.execute("CHECKPOINT")
    finally:
        await owner.execute("ALTER SYSTEM RESET wal_recycle")
        await owner.execute("SELECT pg_reload_conf()")
    oldest = (await _segments(owner))[0]
    if oldest <= now:
        return Log(None, "a replication slot, wal_keep_size or an archive that lags behind keeps it")
    return Log(oldest)


async def _segments(owner: asyncpg.Connection) -> list[str]:
    rows = await owner.fetch("SELECT name FROM pg_ls_waldir() WHERE name ~ '^[0-9A-F]{24}$' ORDER BY name")
    return [row["name"] for row in rows]


_AHEAD = """
SELECT max(name) >= pg_walfile_name(pg_current_wal_insert_lsn()) FROM pg_ls_waldir() WHERE name = ANY($1)
"""


async def _use_up_segments(owner: asyncpg.Connection) -> None:
    """Writes the log past every segment that there is: leaving one fills the rest of it with zeros."""
    there = await _segments(owner)
    for _ in range(MOST_SEGMENTS):
        await owner.execute("SELECT pg_logical_emit_message(false, 'casebank', 'scrub')")
        await owner.execute("SELECT pg_switch_wal()")
        if not await owner.fetchval(_AHEAD, there):
            return
    raise ScrubRefused("the server keeps more of its log than can be used up: repeat the scrub")
