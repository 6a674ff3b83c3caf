"""What of an erased user stands in others' rows: the name of whoever acted for them, which becomes a tombstone."""

import asyncio
import hashlib

from sqlalchemy import Column, Select, Update, func, select, tuple_, update

from retrieval.database.database import Database
from retrieval.tables.audit import audit
from retrieval.tables.cases import cases
from retrieval.tables.decisions import rewards
from retrieval.tables.procedures import procedure_reviews

NAMES = (audit.c.actor, rewards.c.actor, procedure_reviews.c.actor, cases.c.source)
"""The columns that name who acted, in the rows of the user for whom."""
BATCH = 5_000
"""Rows renamed in one transaction: others wait for no longer than that takes."""
TRIES = 20
"""How often to come back for rows that somebody else is changing."""
WAIT_S = 0.25


def digest(user_sub: str) -> str:
    """Returns what an erased user is known by: sha256 of the name, in hex."""
    return hashlib.sha256(user_sub.encode()).hexdigest()


def tombstone(user_sub: str) -> str:
    """Returns what stands in the place of an erased user's name; rows of one name still share one."""
    return f"erased:{digest(user_sub)}"


async def rename(database: Database, user_sub: str) -> tuple[dict[str, int], dict[str, int]]:
    """Puts the tombstone in the place of the name wherever it stands in others' rows; a repeat goes on.

    Returns how many rows were renamed, and how many are left, by table and column. Some are left only where another
    transaction held them all the time.
    """
    renamed, left = {}, {}
    for column in NAMES:
        where = f"{column.table.name}.{column.name}"
        renamed[where] = await _rename(database, user_sub, column)
        async with database.as_eraser_elsewhere(user_sub) as connection:
            left[where] = (await connection.execute(named(user_sub, column))).scalar_one()
    return renamed, left


async def _rename(database: Database, user_sub: str, column: Column[str]) -> int:
    done = waited = 0
    while waited < TRIES:
        async with database.as_eraser_elsewhere(user_sub) as connection:
            count = (await connection.execute(rename_some(user_sub, column))).rowcount
            left = count == BATCH or (await connection.execute(named(user_sub, column))).scalar_one()
        done += count
        if not left:
            break
        if not count:
            waited += 1
            await asyncio.sleep(WAIT_S)
    return done


def rename_some(user_sub: str, column: Column[str]) -> Update:
    """Returns the statement that renames up to BATCH rows that nobody else is changing."""
    table = column.table
    key = tuple(table.primary_key.columns)
    some = select(*key).where(column == user_sub).limit(BATCH).with_for_update(skip_locked=True)
    return update(table).where(tuple_(*key).in_(some)).values({column: tombstone(user_sub)})


def named(user_sub: str, column: Column[str]) -> Select[int]:
    """Returns the statement that counts the rows that still have the name."""
    return select(func.count()).select_from(column.table).where(column == user_sub)
