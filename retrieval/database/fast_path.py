"""The fast path of retrieve and retain: runs statements with asyncpg itself.

SQLAlchemy builds and compiles these statements like all others; only its executor is left out, which costs about
0.25 ms a statement, as much as a small retrieve takes in the database.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache, cached_property
from typing import Any, Generic, Self, TypeVar
from uuid import UUID

import asyncpg
from sqlalchemy import Table, text
from sqlalchemy.dialects.postgresql.asyncpg import PGDialect_asyncpg
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.sql import ClauseElement

Answer = TypeVar("Answer")
"""Type of a statement's answer: the record of its rows, or the type of its one value."""


class Record(asyncpg.Record):  # type: ignore[misc]
    """A row of an answer whose columns can be read as attributes, like those of SQLAlchemy's rows.

    Reading a row so needs no conversion. A Protocol may name the columns of a statement whose rows go far.
    """

    __getattr__ = asyncpg.Record.__getitem__  # in C, for a retrieve reads some hundred columns


class FastStatement(Generic[Answer]):
    """A statement as asyncpg runs it: SQL with numbered parameters, and the names of the parameters in their order.

    It is made of one of SQLAlchemy's, whose parameters must need no conversion by SQLAlchemy, and compiled at its first
    use, because that takes milliseconds and most commands use few statements.
    """

    def __init__(self, statement: ClauseElement) -> None:
        self._statement = statement

    @cached_property
    def _compiled(self) -> tuple[str, tuple[str, ...], Mapping[str, object]]:
        """Returns the SQL, the parameters' names in the order of their numbers, and the values that it binds itself."""
        compiled: Any = self._statement.compile(dialect=PGDialect_asyncpg())  # type: ignore[no-untyped-call]
        bound = {name: value for name, value in compiled.params.items() if not compiled.binds[name].required}
        return str(compiled), tuple(compiled.positiontup or ()), bound

    @property
    def sql(self) -> str:
        """Returns the statement's SQL, with numbered parameters."""
        return self._compiled[0]

    def arguments(self, parameters: Mapping[str, object]) -> list[object]:
        """Returns the parameters' values in the order of their numbers; raises KeyError if one is missing."""
        _, names, bound = self._compiled
        return [parameters[name] if name in parameters else bound[name] for name in names]


@cache
def insert_row(table: Table, names: tuple[str, ...], end: str = "") -> FastStatement[UUID]:
    """Returns a statement that inserts a row, with a parameter for each of these columns.

    A Citus cluster sends this INSERT of VALUES to one shard as it is. The rows of an INSERT of a SELECT would go by way
    of the coordinator to each node, and commit in two phases.

    ``end`` is SQL after the values, such as ``ON CONFLICT DO NOTHING``.
    """
    values = ", ".join(f":{name}" for name in names)
    row = f"INSERT INTO {table.name} ({', '.join(names)}) VALUES ({values}) {end}"  # noqa: S608 - our own names
    return FastStatement(text(row))


@dataclass(frozen=True, slots=True)
class FastConnection:
    """A connection that runs fast statements, each with the parameters ``user_sub`` and ``authorised_at`` added.

    Attributes:
        authorised_at: time at which the request was authorised to act for the user.
        citus: true if the statements run on a Citus cluster, in a transaction that has entered as the user.
    """

    driver: asyncpg.Connection
    user_sub: str
    authorised_at: datetime
    citus: bool = False

    @classmethod
    async def within(cls, connection: AsyncConnection, user_sub: str, authorised_at: datetime) -> Self:
        """Returns a connection whose fast statements belong to the open transaction of SQLAlchemy's connection."""
        raw = await connection.get_raw_connection()
        return cls(raw.driver_connection, user_sub, authorised_at)

    async def all(self, statement: FastStatement[Answer], parameters: Mapping[str, object]) -> Sequence[Answer]:
        """Runs the statement; returns all rows of its answer."""
        rows: Sequence[Answer] = await self.driver.fetch(
            statement.sql, *statement.arguments(self._entering(parameters)), record_class=Record
        )
        return rows

    async def value(self, statement: FastStatement[Answer], parameters: Mapping[str, object]) -> Answer | None:
        """Runs the statement; returns the first value of its first row, or None if the answer has no row."""
        value: Answer | None = await self.driver.fetchval(
            statement.sql, *statement.arguments(self._entering(parameters))
        )
        return value

    def _entering(self, parameters: Mapping[str, object]) -> dict[str, object]:
        return {**parameters, "user_sub": self.user_sub, "authorised_at": self.authorised_at}
