"""The fast path of retrieve and retain: statements run by asyncpg itself.

SQLAlchemy builds and compiles them as it does all others; only its executor is left out, which costs about
0.25 ms a statement, as much as a small retrieve takes in the database.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache, cached_property
from typing import Generic, Self, TypeVar
from uuid import UUID

import asyncpg
from sqlalchemy import Table, text
from sqlalchemy.dialects.postgresql.asyncpg import PGDialect_asyncpg
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.sql import ClauseElement
from sqlalchemy.sql.compiler import Compiled

Answer = TypeVar("Answer")
"""Answer of a statement: the record of its rows, or the type of its one value."""


class Record(asyncpg.Record):  # type: ignore[misc]
    """A row whose columns are attributes, as SQLAlchemy's are.

    A statement names a Protocol for its rows, so that reading one costs no conversion.
    """

    def __getattr__(self, name: str) -> object:
        """Returns the value of the column."""
        return self[name]


class FastStatement(Generic[Answer]):
    """A statement in Postgres' own words, with the names of its parameters in their order.

    It is compiled when it is first used, for that takes milliseconds and most commands use few statements.
    """

    def __init__(self, statement: ClauseElement) -> None:
        self._statement = statement

    @classmethod
    def of(cls, statement: ClauseElement) -> Self:
        """Returns the statement; its parameters must need no conversion by SQLAlchemy."""
        return cls(statement)

    @cached_property
    def _compiled(self) -> Compiled:
        return self._statement.compile(dialect=PGDialect_asyncpg())  # type: ignore[no-untyped-call]

    @cached_property
    def sql(self) -> str:
        """Returns the text, with the parameters by number."""
        return str(self._compiled)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Returns the names of the parameters in the order of their numbers."""
        return tuple(getattr(self._compiled, "positiontup", None) or ())

    @cached_property
    def constants(self) -> Mapping[str, object]:
        """Returns the values of the parameters that are bound already."""
        return self._compiled.params or {}

    def arguments(self, parameters: Mapping[str, object]) -> list[object]:
        """Returns the parameters' values in the order of the statement."""
        return [parameters[name] if name in parameters else self.constants[name] for name in self.names]


@cache
def insert_row(table: Table, names: tuple[str, ...], end: str = "") -> FastStatement[UUID]:
    """Returns a statement that inserts the parameters of these names as a row.

    A cluster sends it to one shard as it is. The rows of an INSERT of a SELECT go by way of the coordinator to each
    node of a cluster, and commit in two phases.
    """
    values = ", ".join(f":{name}" for name in names)
    row = f"INSERT INTO {table.name} ({', '.join(names)}) VALUES ({values}) {end}"  # noqa: S608 - our own names
    return FastStatement(text(row))


@dataclass(frozen=True, slots=True)
class FastConnection:
    """A connection that runs fast statements, each with the parameters ``user_sub`` and ``authorised_at`` added.

    Attributes:
        citus: whether they run on a Citus cluster, in a transaction that has entered.
    """

    driver: asyncpg.Connection
    user_sub: str
    authorised_at: datetime
    citus: bool = False

    @classmethod
    async def within(cls, connection: AsyncConnection, user_sub: str, authorised_at: datetime) -> Self:
        """Returns a connection whose statements belong to the transaction that is open on the other one."""
        raw = await connection.get_raw_connection()
        return cls(raw.driver_connection, user_sub, authorised_at)

    async def all(self, statement: FastStatement[Answer], parameters: Mapping[str, object]) -> Sequence[Answer]:
        """Returns every row of the answer."""
        rows: Sequence[Answer] = await self.driver.fetch(
            statement.sql,
            *statement.arguments(self._entering(parameters)),
            record_class=Record,
        )
        return rows

    async def value(self, statement: FastStatement[Answer], parameters: Mapping[str, object]) -> Answer | None:
        """Returns the first value of the first row, or None without one."""
        value: Answer | None = await self.driver.fetchval(
            statement.sql, *statement.arguments(self._entering(parameters))
        )
        return value

    def _entering(self, parameters: Mapping[str, object]) -> dict[str, object]:
        return {**parameters, "user_sub": self.user_sub, "authorised_at": self.authorised_at}
