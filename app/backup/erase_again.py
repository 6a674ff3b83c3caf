"""Erasures win over backups: a user who was erased after a backup is erased again when it is restored."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from operator import itemgetter
from pathlib import Path

import asyncpg

from app.erasure.command import make_issuer
from app.postgres.pools import one_connection, service_database
from app.settings import Settings
from retrieval.tables.audit import erasures
from retrieval.tables.keys import token_revocations
from retrieval.tables.metadata import USER_TABLES
from writer.privacy.master_keys import MasterKeys, agree
from writer.rights.erase import NAMES, Receipt, digest, erase
from writer.rights.signature import SignatureBroken, documents


class NotErasedAgain(ValueError):
    """A user was not erased again; the message says why, and what to do."""


def read_receipts(paths: Iterable[Path]) -> list[tuple[str, datetime]]:
    """Returns digest of the name and time of each erasure in files of ``casebank purge --json``.

    Raises:
        NotErasedAgain: a file is not a receipt.
    """
    erased: list[tuple[str, datetime]] = []
    for path in paths:
        try:
            erased += [
                (
                    bytes.fromhex(receipt["user_sha256"]).hex(),
                    datetime.fromisoformat(receipt["erased_at"]).astimezone(UTC),
                )
                for receipt in documents(path.read_text(encoding="utf-8"))
            ]
        except (OSError, KeyError, TypeError, ValueError, SignatureBroken) as error:
            raise NotErasedAgain(f"{path} is no receipt of `casebank purge --json`: {type(error).__name__}") from None
    return erased


async def erase_again(settings: Settings, url: str, erased: Iterable[tuple[str, datetime]]) -> list[Receipt]:
    """Erases the users whose erasure the database does not know; returns receipts of those of whom it had traces.

    These have rows, or their names stand in rows of others. Their receipts are signed and stored. All other users get
    their tombstone, too, so that an old token cannot make the user anew.

    ``url`` logs in as the owner of the tables; ``erased`` has digests of names with times of erasures.

    Raises:
        NotErasedAgain: the URL logs in as another role, or another transaction locked rows with an erased user's name.
        MasterKeyMismatch: the receipts would be signed with another installation's key; nothing was changed.
    """
    held = MasterKeys.of(settings.master_key_bytes, *settings.old_master_keys)
    last = dict(sorted(erased, key=itemgetter(1)))
    named = " UNION ".join(f"SELECT {name.name} FROM {name.table.name}" for name in NAMES)  # noqa: S608 - our own names
    async with _unforced(url) as connection:
        known = await tombstones(connection)
        others = {name for (name,) in await connection.fetch(named) if name}
        names = {digest(name): name for name in others.union(await users(connection))}
    missing = {each for each, at in last.items() if each not in known or known[each] < at}
    async with service_database(url, pool_size=1) as database:
        async with database.as_worker() as connection:
            await agree(connection, held)
        issuer = await make_issuer(database, settings)
        receipts = []
        for each in sorted(missing & names.keys()):
            receipts.append(await erase(database, names[each]))
            await issuer.issue(receipts[-1])
    unknown = sorted(missing - names.keys())
    async with _unforced(url) as connection:
        stone = "INSERT INTO erasures (user_sub, erased_at, receipt) VALUES ($1, $2, '{}')"
        await connection.executemany(stone, [(each, last[each]) for each in unknown])
        blank = "UPDATE token_revocations SET why = '' WHERE subject_sha256 = decode($1, 'hex')"
        await connection.executemany(blank, [(each,) for each in unknown])
    if left := [receipt.user_digest for receipt in receipts if not receipt.clean]:
        raise NotErasedAgain(f"stop the service, and erase with `casebank purge` whose names have the SHA-256 {left}")
    return receipts


async def users(connection: asyncpg.Connection) -> list[str]:
    """Returns the users who have a row in any table; row-level security must not bind the connection."""
    tables = " UNION ".join(f"SELECT user_sub FROM {table.name}" for table in USER_TABLES)  # noqa: S608 - our own names
    return [user_sub for (user_sub,) in await connection.fetch(tables) if user_sub]


async def tombstones(connection: asyncpg.Connection) -> dict[str, datetime]:
    """Returns the time of each user's last erasure, by the digest of the name."""
    statement = "SELECT user_sub, max(erased_at) FROM erasures GROUP BY user_sub"
    return dict(map(tuple, await connection.fetch(statement)))


@asynccontextmanager
async def _unforced(url: str) -> AsyncIterator[asyncpg.Connection]:
    """Yields a connection in a transaction, with row-level security off for an owner without superuser rights."""
    tables = [table.name for table in (*USER_TABLES, erasures, token_revocations)]
    try:
        async with one_connection(url) as connection, connection.transaction():
            for table in tables:
                await connection.execute(f"ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY")
            yield connection
            await connection.execute("SET CONSTRAINTS ALL IMMEDIATE")  # links the tombstones now, not at the end
            for table in tables:
                await connection.execute(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY")
    except asyncpg.InsufficientPrivilegeError as error:
        raise NotErasedAgain(
            "the login of DATABASE_URL does not own the tables: erase again with the one that migrates"
        ) from error
