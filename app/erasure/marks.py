"""Marks of an erased user: the name and pieces of the user's texts, which a search of the disk looks for."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from sqlalchemy import RowMapping, Table, select
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.database.database import Database
from retrieval.tables.cases import cases
from retrieval.tables.decisions import decisions
from retrieval.tables.procedures import procedures
from writer.privacy.keys import Keyring
from writer.privacy.seal import SealBroken
from writer.privacy.words import Words

LEAST_CHARS, MOST_CHARS = 12, 64
"""Characters of a piece: shorter ones stand in other users' rows, longer ones may lie across two pages."""
SAMPLES = 200
"""Number of each table's newest rows that are sampled."""


@dataclass(frozen=True, slots=True)
class Marks:
    """Texts of an erased user, to search tables and logs for leftovers; no row of another user contains one of them."""

    name: str
    texts: Sequence[str] = ()

    def by_kind(self) -> dict[str, int]:
        """Returns the number of marks of each kind."""
        return {"name": 1, "texts": len(self.texts)}

    def all(self) -> list[str]:
        """Returns every mark."""
        return [self.name, *self.texts]


async def sample(database: Database, keyring: Keyring, user_sub: str) -> Marks:
    """Returns the marks of a user who is about to be erased.

    Sealed texts are opened: they may have been written in plain before, and still lie in a dead row.
    """
    async with database.as_eraser(user_sub) as connection:
        runs = await _newest(connection, user_sub, cases, ("id", "task", "plan", "words"))
        queries = await _newest(connection, user_sub, decisions, ("id", "query", "rewritten", "words"))
        texts = [row["trigger"] for row in await _newest(connection, user_sub, procedures, ("trigger",))]
        with suppress(SealBroken):  # a user whose key is lost can be erased all the same
            if (key := await keyring.find(connection, user_sub)) is not None:
                words = Words(user_sub, key)
                texts += [words.opened(row)["task"] for row in runs]
                texts += [words.open_query(row)["query"] for row in queries]
    lines = [max(each.splitlines(), key=len, default="").strip()[:MOST_CHARS] for each in texts]
    return Marks(user_sub, list(dict.fromkeys(line for line in lines if len(line) >= LEAST_CHARS)))


async def _newest(
    connection: AsyncConnection, user_sub: str, table: Table, names: Sequence[str]
) -> Sequence[RowMapping]:
    columns = [table.c[name] for name in names]
    newest = select(*columns).where(table.c.user_sub == user_sub).order_by(table.c.id.desc()).limit(SAMPLES)
    return (await connection.execute(newest)).mappings().all()
