"""Replaces an erased user's name by a tombstone in rows of other users, where it stands as the actor of a change."""

import asyncio
import hashlib

from sqlalchemy import Column, Select, Update, func, select, tuple_, update

from retrieval.database.database import Database
from retrieval.tables.audit import audit
from retrieval.tables.cases import cases
from retrieval.tables.decisions import rewards
from retrieval.tables.procedures import procedure_reviews

NAMES = (cases.c.source, audit.c.actor, rewards.c.actor, procedure_reviews.c.actor)
"""Columns that may hold a user's name in rows of other users.

The cases come first: the worker copies the name from a case, which it has locked, to the audit.
"""
BATCH = 5_000
"""Maximum number of rows that one transaction changes, so that locks are short."""
TRIES = 20
"""Maximum number of attempts while another transaction locks a row."""
WAIT_S = 0.25


def digest(user_sub: str) -> str:
    """Returns the digest of a user's name: sha256 in hex."""
    return hashlib.sha256(user_sub.encode()).hexdigest()


def tombstone(user_sub: str) -> str:
    """Returns the tombstone that replaces an erased user's name; equal names have equal tombstones."""
    return f"erased:{digest(user_sub)}"


async def rename(database: Database, user_sub: str) -> tuple[dict[str, int], dict[str, int]]:
    """Replaces the user's name by the tombstone in all rows of other users; may be repeated.

    Returns the number of renamed rows and of remaining rows, by table and column. Rows remain only if another
    transaction held their locks all the time.
    """
    renamed, left = {}, {}
    statement = rename_all if database.citus else rename_some
    for column in NAMES:
        where = f"{column.table.name}.{column.name}"
        renamed[where] = waited = 0
        while waited < TRIES:
            async with database.as_eraser_elsewhere(user_sub) as connection:
                count = (await connection.execute(statement(user_sub, column))).rowcount
                more = count == BATCH or (await connection.execute(named(user_sub, column))).scalar_one()
            renamed[where] += count
            if not more:
                break
            if not count:
                waited += 1
                await asyncio.sleep(WAIT_S)
        async with database.as_eraser_elsewhere(user_sub) as connection:
            left[where] = (await connection.execute(named(user_sub, column))).scalar_one()
    return renamed, left


def rename_some(user_sub: str, column: Column[str]) -> Update:
    """Returns the statement that replaces the user's name in up to BATCH rows of a column, skipping locked rows."""
    table = column.table
    key = tuple(table.primary_key.columns)
    some = select(*key).where(column == user_sub).limit(BATCH).with_for_update(skip_locked=True)
    return update(table).where(tuple_(*key).in_(some)).values({column: tombstone(user_sub)})


def rename_all(user_sub: str, column: Column[str]) -> Update:
    """Returns the statement that replaces the user's name in all rows of a column, waiting for locks; for a cluster.

    A cluster can lock the rows of only one user in a statement, so that it cannot skip locked rows.
    """
    return update(column.table).where(column == user_sub).values({column: tombstone(user_sub)})


def named(user_sub: str, column: Column[str]) -> Select[int]:
    """Returns the statement that counts the rows of a column that still have the user's name."""
    return select(func.count()).select_from(column.table).where(column == user_sub)
