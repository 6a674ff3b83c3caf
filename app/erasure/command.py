"""The work of `casebank purge`: erases a user, scrubs the disk, reads receipts."""

import mmap
import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from sqlalchemy import RowMapping, Table, exists, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.erasure.scrub import Progress, scrub
from app.postgres.pools import one_connection, service_database
from app.runtime import owner_url, running
from app.settings import Settings
from retrieval.database.database import Database
from retrieval.errors import SealBroken
from retrieval.tables.cases import cases
from retrieval.tables.decisions import decisions
from retrieval.tables.metadata import USER_TABLES
from retrieval.tables.procedures import procedures
from writer.privacy.keys import Keyring
from writer.privacy.master_keys import MasterKeyMismatch, MasterKeys, agree
from writer.privacy.words import readable
from writer.rights.erase import NAMES, digest, erase
from writer.rights.places import MarkSearch, Surroundings
from writer.rights.receipt import Issuer, stored
from writer.rights.signature import Signer

LEAST_CHARS, MOST_CHARS = 12, 64
"""Characters of a piece: shorter ones stand in other users' rows, longer ones may lie across two pages."""
LEAST_NAME_BYTES = 5
"""Bytes of a name that is searched for: a shorter one stands by chance among the sealed bytes of a large bank."""
SAMPLES = 200
"""Number of each table's newest rows that are sampled."""
FOLDERS = ("base", "global", "pg_wal")
"""Folders of a Postgres data directory with rows, indexes, statistics and the write-ahead log."""


async def sample(database: Database, keyring: Keyring, user_sub: str) -> list[str]:
    """Returns pieces of the texts of a user who is about to be erased, to search the server's files for.

    Sealed texts are opened: they may have been written in plain before, and still lie in a dead row. Texts that do not
    decrypt are left out.
    """
    async with database.as_eraser(user_sub) as connection:
        runs = await _newest(connection, user_sub, cases, ("id", "task", "plan", "words"))
        queries = await _newest(connection, user_sub, decisions, ("id", "query", "rewritten", "words"))
        texts = [row["trigger"] for row in await _newest(connection, user_sub, procedures, ("trigger",))]
        texts += [row["task"] for row in runs] + [row["query"] for row in queries]  # empty where they are sealed
        with suppress(SealBroken, MasterKeyMismatch):  # a user whose key is lost can be erased all the same
            if (words := await keyring.find(connection, user_sub)) is not None:
                texts += [row["task"] for row in readable(words.opened, runs)]
                texts += [row["query"] for row in readable(words.open_query, queries)]
    lines = [max(each.splitlines(), key=len, default="").strip()[:MOST_CHARS] for each in texts]
    return list(dict.fromkeys(line for line in lines if len(line) >= LEAST_CHARS))


async def _newest(
    connection: AsyncConnection, user_sub: str, table: Table, names: Sequence[str]
) -> Sequence[RowMapping]:
    columns = [table.c[name] for name in names]
    newest = select(*columns).where(table.c.user_sub == user_sub).order_by(table.c.id.desc()).limit(SAMPLES)
    return (await connection.execute(newest)).mappings().all()


def search(data: Path, marks: Sequence[str]) -> dict[str, dict[str, int]]:
    """Returns how often each mark, a text, stands in each file of the data folder and of the server's log.

    The result has a file, by its path, only if it holds a mark. Text that Postgres compressed (of more than about
    2 kB) is not found.
    """
    pattern = re.compile(b"|".join(re.escape(mark.encode()) for mark in sorted(marks, key=len, reverse=True)))
    files = [path for folder in FOLDERS for path in sorted((data / folder).rglob("*")) if path.is_file()]
    files += sorted(data.parent.glob(f"{data.name}.log*"))
    hits: dict[str, dict[str, int]] = {}
    for file in files:
        with (
            suppress(FileNotFoundError, ValueError),  # gone meanwhile, or empty
            file.open("rb") as opened,
            mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as content,
        ):
            if counts := Counter(match.group().decode() for match in pattern.finditer(content)):
                hits[file.relative_to(data.parent).as_posix()] = dict(counts)
    return hits


_REPLICAS = text(
    "SELECT (SELECT count(*) FROM pg_stat_replication) + (SELECT count(*) FROM pg_replication_slots) AS standbys,"
    " current_setting('archive_mode') <> 'off' AS archives"
)


# all but the statistics: a mark of the user must not stand there
_TABLES = "SELECT oid::regclass::text FROM pg_class WHERE relkind = 'r' AND relname <> 'pg_statistic' ORDER BY 1"


async def purge(
    settings: Settings, user: str | None, *, scrubs: bool, progress: Progress
) -> tuple[dict[str, Any] | None, int]:
    """Erases the user, if given, and then scrubs the disk, if ``scrubs``.

    Returns the signed receipt, None if no user was given, and the number of receipts that the scrub completed.

    Raises:
        ScrubRefused: the user is erased and the disk is not scrubbed, as the receipt says; a scrub can be repeated.
        DatabaseUnavailable: the erasure failed, or its result is unknown; repeat it.
    """
    texts: list[str] = []
    receipt = None
    if user is not None:
        async with running(settings) as runtime:
            texts = await sample(runtime.database, runtime.keyring, user) if scrubs else []
            issuer = await make_issuer(runtime.database, settings)
            receipt = await issuer.issue(await erase(runtime.database, user))
    if not scrubs:
        return receipt, 0
    completed = await scrub_bank(settings, user, texts, progress)
    if user is not None:
        receipt = (await receipts(settings, digest(user)))[-1]
    return receipt, completed


async def is_known(database: Database, user: str) -> bool:
    """Returns whether a row belongs to the user, or another user's row names the user."""
    async with database.as_eraser(user) as connection:
        for table in USER_TABLES:
            if await connection.scalar(select(exists().where(table.c.user_sub == user))):
                return True
    async with database.as_eraser_elsewhere(user) as connection:
        for column in NAMES:
            if await connection.scalar(select(select(column).where(column == user).exists())):
                return True
    return False


async def receipts(settings: Settings, user_digest: str) -> list[dict[str, Any]]:
    """Returns the stored receipts of a user's erasures, the oldest first."""
    async with owner_url(settings) as url, service_database(url, pool_size=1) as database:
        return [document for _, _, document in await stored(database, user_digest)]


async def scrub_bank(settings: Settings, user: str | None, texts: Sequence[str], progress: Progress) -> int:
    """Scrubs the disk, completes the receipts of earlier erasures with the result, and returns their number.

    The erased user's name and texts are searched for in the server's files, if these are on this machine. ``progress``
    receives the digests whose receipts are left as they are, because this installation did not sign them.

    Raises:
        MasterKeyMismatch: the receipts would be signed with another installation's key; nothing was changed.
    """
    held = MasterKeys.of(settings.master_key_bytes, *settings.old_master_keys)
    async with owner_url(settings) as url:
        async with service_database(url, pool_size=1) as database, database.as_worker() as connection:
            await agree(connection, held)
        scrubbed = replace(await scrub(url, progress), readable=settings.database_url is None)
        searches = {}
        if scrubbed.readable and user is not None:
            progress("searching the files")
            searches[digest(user)] = await _search(url, settings.home / "postgres", user, texts)
        async with service_database(url, pool_size=1, timeout_s=settings.timeouts_s.database) as database:
            issuer = await make_issuer(database, settings)
            completed, left = await issuer.complete(scrubbed, searches)
        for user_digest in left:
            progress(f"left as it is, because this installation did not sign it: the receipt of {user_digest}")
        return completed


async def make_issuer(database: Database, settings: Settings) -> Issuer:
    """Returns the issuer of this installation's receipts."""
    async with database.engine.connect() as connection:
        seen = (await connection.execute(_REPLICAS)).one()
    urls = [settings.openai_base_url] if settings.embedder == "openai" else []
    urls += [settings.llm_base_url] if settings.llm == "openai" else []
    hosts = tuple(dict.fromkeys(urlsplit(url).hostname or url for url in urls))  # texts are sent there
    around = Surroundings(SEALED[settings.seal], hosts, seen.standbys, seen.archives)
    earlier = [Signer.of(key).public_key for key in settings.old_master_keys]
    return Issuer(database, Signer.of(settings.master_key_bytes), around, earlier)


SEALED = {
    "payload": "tool traces, turns, prompt snapshots; the rest is plain",
    "all": "tool traces, turns, prompt snapshots, and what was written since it is so set: tasks, plans and queries;"
    " plain are the stemmed words of the search index, tags, names of tools and agents, procedures, vectors",
}


async def _search(url: str, data: Path, user: str, texts: Sequence[str]) -> MarkSearch:
    """Searches the server's files for the erased user's name and texts, and returns the number of hits in each file.

    A mark that stands in a row of another user, or is a word of Postgres itself, is no proof and is left out.
    """
    names = [user] if len(user.encode()) >= LEAST_NAME_BYTES else []
    by_file = search(data, [*names, *texts]) if names or texts else {}
    met = sorted({mark for counts in by_file.values() for mark in counts})
    shared: set[str] = set()
    if met:
        async with one_connection(url) as connection:
            for (table,) in await connection.fetch(_TABLES):
                there = f"SELECT m FROM unnest($1::text[]) m WHERE EXISTS (SELECT FROM {table} t WHERE strpos(t::text, m) > 0)"  # noqa: E501, S608
                shared |= {row["m"] for row in await connection.fetch(there, met)}
    rest = {file: sum(n for mark, n in counts.items() if mark not in shared) for file, counts in by_file.items()}
    return MarkSearch(
        {"name": len(names), "texts": len(texts)}, len(shared), {file: count for file, count in rest.items() if count}
    )
