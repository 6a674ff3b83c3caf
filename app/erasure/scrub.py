"""Rewrites the tables that held deleted rows and makes the server drop its log, as the owner of the tables.

Every table is locked while it is rewritten, one after the other; a table in use is tried again for a
while. Nothing is lost if it breaks off: each table is rewritten whole or not at all, and a repeat does all of it again.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Literal

import asyncpg

from app.postgres.pools import dsn, is_citus
from retrieval.errors import CasebankError
from retrieval.patterns import read
from retrieval.tables.audit import erasures
from retrieval.tables.keys import token_revocations
from retrieval.tables.metadata import USER_TABLES
from writer.rights.places import Scrubbed

_SQL = read("app.postgres", "statements.toml")["scrub"]

TABLES = (*(table.name for table in USER_TABLES), erasures.name, token_revocations.name)
CATALOGS = ("pg_statistic",)
"""Tables of the server itself that held samples of users' rows."""

LOCK_TIMEOUT_MS = 5_000
PATIENCE_S = 120.0
"""Seconds to try for a table that is in use, and to wait for older transactions."""
POLL_S = 0.5
MOST_SEGMENTS = 4_096
"""Most segments of the log that one round writes: 64 GiB, more than any server keeps for itself."""
MAGIC_HIGH_BYTES = (0xD0, 0xD1)
"""High bytes of the magic number at the start of each page of the log, in every version of PostgreSQL."""


class ScrubRefused(CasebankError):
    """The scrub stopped before its end; the text names the obstacle. Rewritten tables stay so, and a repeat is safe."""


Progress = Callable[[str], None]
"""Callback that receives the name of each step before it begins."""


async def scrub(url: str, progress: Progress, patience_s: float = PATIENCE_S) -> Scrubbed:
    """Rewrites every table that held users' rows, and makes the server drop its earlier log, if the login may.

    After an erasure the deleted rows are still in the files of the tables and in the log; after a scrub they are not.

    ``patience_s`` bounds the wait for a table in use, for old transactions, and for a log that the server recycles.

    Raises:
        ScrubRefused: this is a cluster, the login owns no table, a table stays in use, or an old transaction still sees
            what was deleted.
    """
    if is_citus(url):
        raise ScrubRefused("a scrub reaches the files of one server, and this is a Citus cluster: see docs/scale.md")
    owner = await asyncpg.connect(dsn(url), server_settings={"application_name": "casebank scrub"})
    try:
        await owner.execute(f"SET lock_timeout = {LOCK_TIMEOUT_MS}")
        if not await owner.fetchval(_SQL["owns_tables"], list(TABLES)):  # VACUUM would only warn, and leave them
            raise ScrubRefused("the login of DATABASE_URL does not own the tables: scrub with the one that migrates")
        began_at = await owner.fetchval("SELECT clock_timestamp()")
        progress("gathering statistics")
        await owner.execute("SELECT casebank_gather_statistics()")  # first: the old ones are dead rows, too
        await _wait_for_old_transactions(owner, progress, patience_s)
        for table in (*TABLES, *CATALOGS):
            progress(f"rewriting {table}")
            await _rewrite(owner, table, patience_s)
        log = await _drop_log(owner, progress, patience_s)
    finally:
        await owner.close()
    return Scrubbed(began_at, len(TABLES), *log)


async def _wait_for_old_transactions(owner: asyncpg.Connection, progress: Progress, patience_s: float) -> None:
    """Waits for every transaction that may still see rows deleted before now: a rewrite would keep those rows.

    The order of the two queries counts. Once no old writer runs, no new snapshot reaches back before now; the old
    snapshots that are left were taken earlier, so the second query sees them.
    """
    now = await owner.fetchval("SELECT pg_current_xact_id()::xid")
    deadline = time.monotonic() + patience_s
    while older := await owner.fetch(_SQL["old_writers"], now) or await owner.fetch(_SQL["old_readers"], now):
        who = older[0]["who"]
        if time.monotonic() > deadline:
            raise ScrubRefused(f"{who} still sees what was deleted: end it, and repeat the scrub")
        progress(f"waiting for {who}")
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


async def _drop_log(owner: asyncpg.Connection, progress: Progress, patience_s: float) -> tuple[str | None, str]:
    """Writes the log on until the server holds no page of it from before now; returns its first segment.

    If older content is left, it returns None and the reason for that.

    A checkpoint removes a segment of the log, or gives it a later name and keeps its content ("recycles" it). A
    recycled segment is written over in the next round, and no setting of the server has to change for that. The pages
    themselves show when the work is done.
    """
    if not await owner.fetchval("SELECT rolsuper FROM pg_roles WHERE rolname = current_user"):
        return None, "the login may not make the server drop it: that takes a superuser"
    progress("dropping the log")
    position, last = await owner.fetchrow(
        "SELECT lsn - '0/0' AS position, pg_walfile_name(lsn) AS last FROM pg_current_wal_insert_lsn() AS lsn"
    )
    await _write_past_segments(owner)
    deadline = time.monotonic() + patience_s
    while True:
        segments = await _segments(owner)
        if segments[0] <= last:
            return None, "a replication slot, wal_keep_size or an archive that lags behind keeps it"
        old = [segment for segment in segments if await _has_page_before(owner, segment, int(position))]
        if not old:
            return segments[0], ""
        if time.monotonic() >= deadline:
            return None, f"the server recycled it, and {len(old)} segments still hold pages from before the scrub"
        progress(f"writing over {len(old)} recycled segments of the log")
        await _write_past_segments(owner)


async def _segments(owner: asyncpg.Connection) -> list[str]:
    rows = await owner.fetch("SELECT name FROM pg_ls_waldir() WHERE name ~ '^[0-9A-F]{24}$' ORDER BY name")
    return [row["name"] for row in rows]


async def _write_past_segments(owner: asyncpg.Connection) -> None:
    """Moves the log past every segment of now, and has a checkpoint remove or recycle the segments behind it.

    To leave a segment fills the rest of it with zeros.
    """
    there = await _segments(owner)
    for _ in range(MOST_SEGMENTS):
        await owner.execute("SELECT pg_logical_emit_message(false, 'casebank', 'scrub')")
        await owner.execute("SELECT pg_switch_wal()")
        if not await owner.fetchval(_SQL["ahead"], there):
            await owner.execute("CHECKPOINT")
            return
    raise ScrubRefused("the server keeps more of its log than can be used up: repeat the scrub")


async def _has_page_before(owner: asyncpg.Connection, segment: str, position: int) -> bool:
    """Returns whether a page of the segment was written for a place in the log before this position.

    The first 16 bytes of a page are magic number (2), flags (2), timeline (4) and position (8), in the byte order of
    the server; a page that was never written is zeros. A segment that is gone counts as old: it may have been renamed.
    """
    headers = [row["header"] for row in await owner.fetch(_SQL["page_headers"], segment)]
    if None in headers:
        return True
    for header in filter(any, headers):
        order: Literal["little", "big"] = "little" if header[1] in MAGIC_HIGH_BYTES else "big"
        if int.from_bytes(header[8:16], order) < position:
            return True
    return False
