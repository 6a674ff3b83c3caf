"""Marks of an erased user, the name and pieces of texts, and the search for them in the files of a Postgres server."""

import mmap
import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import RowMapping, Table, select
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.database.database import Database
from retrieval.tables.cases import cases
from retrieval.tables.decisions import decisions
from retrieval.tables.procedures import procedures
from writer.privacy.keys import Keyring
from writer.privacy.seal import SealBroken
from writer.privacy.words import words_of

LEAST_CHARS, MOST_CHARS = 12, 64
"""Characters of a piece: shorter ones stand in other users' rows, longer ones may lie across two pages."""
SAMPLES = 200
"""Number of each table's newest rows that are sampled."""
FOLDERS = ("base", "global", "pg_wal")
"""Folders of a Postgres data directory with rows, indexes, statistics and the write-ahead log."""


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
            if (words := await words_of(keyring, connection, user_sub)) is not None:
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
