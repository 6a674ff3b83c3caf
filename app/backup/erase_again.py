"""Erasures win over backups: a user who was erased after a backup is erased again when it is restored."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path

import asyncpg

from app.postgres.pools import one_connection, service_database
from retrieval.tables.audit import erasures
from retrieval.tables.keys import token_revocations
from retrieval.tables.metadata import USER_TABLES
from writer.rights.erase import NAMES, Receipt, digest, erase
from writer.rights.signature import SignatureBroken, documents


class NoReceipt(ValueError):
    """The file is not a receipt of an erasure."""


class NamesLeft(ValueError):
    """Rows with an erased user's name are left."""


class NotTheTablesOwner(ValueError):
    """The login does not own the tables."""


def read_receipts(paths: Iterable[Path]) -> dict[str, datetime]:
    """Returns the time of each user's last erasure, by the digest of the name, from files of ``casebank purge --json``.

    Raises:
        NoReceipt: a file is not a receipt.
    """
    erased: dict[str, datetime] = {}
    for path in paths:
        try:
            told = [
                (str(receipt["user_sha256"]), datetime.fromisoformat(receipt["erased_at"]))
                for receipt in documents(path.read_text(encoding="utf-8"))
            ]
            erased = latest([*erased.items(), *told])
        except (OSError, KeyError, TypeError, ValueError, SignatureBroken) as error:
            raise NoReceipt(f"{path} is no receipt of `casebank purge --json`: {type(error).__name__}") from None
    return erased


def latest(erasures: Iterable[tuple[str, datetime]]) -> dict[str, datetime]:
    """Returns the time of each user's last erasure, by the digest of the name, from digests with times."""
    last: dict[str, datetime] = {}
    for user_digest, at in erasures:
        last[user_digest] = max(at, last.get(user_digest, at))
    return last


async def erase_again(url: str, erased: dict[str, datetime]) -> list[Receipt]:
    """Erases the users whose erasure the database does not know; returns receipts of those of whom it had traces.

    These have rows, or their names stand in rows of others. All other users get their tombstone, too, so that an old
    token cannot make the user anew.

    ``url`` logs in as the owner of the tables; ``erased`` has the times of erasures by the digest of the name.

    Raises:
        NotTheTablesOwner: the URL logs in as another role.
        NamesLeft: another transaction locked rows with an erased user's name.
    """
    known = await tombstones(url)
    missing = {each for each, at in erased.items() if each not in known or known[each] < at}
    named = " UNION ".join(f"SELECT {name.name} AS name FROM {name.table.name}" for name in NAMES)  # noqa: S608 - our own names
    others = {row["name"] for row in await _unforced(url, named) if row["name"]}
    names = {digest(name): name for name in others.union(await users(url))}
    async with service_database(url, pool_size=1) as database:
        receipts = [await erase(database, names[each]) for each in sorted(missing & names.keys())]
    unknown = sorted(missing - names.keys())
    statement = "INSERT INTO erasures (user_sub, erased_at, receipt) VALUES ($1, $2, '{}')"
    await _unforced(url, statement, [(each, erased[each]) for each in unknown])
    blank = "UPDATE token_revocations SET why = '' WHERE subject_sha256 = decode($1, 'hex')"
    await _unforced(url, blank, [(each,) for each in unknown])
    if left := [receipt.user_digest for receipt in receipts if not receipt.clean]:
        raise NamesLeft(f"stop the service, and erase with `casebank purge` whose names have the SHA-256 {left}")
    return receipts


async def users(url: str) -> list[str]:
    """Returns the users who have a row in any table; the URL must log in as the owner of the tables."""
    tables = " UNION ".join(f"SELECT user_sub FROM {table.name}" for table in USER_TABLES)  # noqa: S608 - our own names
    return [row["user_sub"] for row in await _unforced(url, f"{tables} ORDER BY 1") if row["user_sub"]]


async def tombstones(url: str) -> dict[str, datetime]:
    """Returns the time of each user's last erasure, by the digest of the name; the URL logs in as the tables' owner."""
    statement = "SELECT user_sub, max(erased_at) AS erased_at FROM erasures GROUP BY user_sub"
    return {row["user_sub"]: row["erased_at"] for row in await _unforced(url, statement)}


async def _unforced(
    url: str, statement: str, rows: Sequence[tuple[object, ...]] | None = None
) -> Sequence[asyncpg.Record]:
    """Runs the statement, once or for each row, with row-level security off for an owner without superuser rights."""
    tables = [table.name for table in (*USER_TABLES, erasures, token_revocations)]
    records: Sequence[asyncpg.Record] = []
    try:
        async with one_connection(url) as connection, connection.transaction():
            for table in tables:
                await connection.execute(f"ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY")
            if rows is None:
                records = await connection.fetch(statement)
            else:
                await connection.executemany(statement, rows)
            await connection.execute("SET CONSTRAINTS ALL IMMEDIATE")  # links the tombstones now, not at the end
            for table in tables:
                await connection.execute(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY")
    except asyncpg.InsufficientPrivilegeError as error:
        raise NotTheTablesOwner(
            "the login of DATABASE_URL does not own the tables: erase again with the one that migrates"
        ) from error
    return records
