"""Opens transactions: as one user, who sees only their own rows, or as the worker, who sees only the queue."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime

import asyncpg
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError, InterfaceError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from retrieval.errors import DatabaseUnavailable, UserErased

ERASED_SQLSTATE = "CB410"
"""What the database function casebank_enter raises for an erased user."""

_ENTER = text("SELECT casebank_enter(:user_sub, :authorised_at)")
_RELAX = text("SELECT set_config('synchronous_commit', 'off', true), casebank_enter(:user_sub, :authorised_at)")
_QUEUE = text("SET LOCAL ROLE casebank_worker")
_ERASE = text(
    "SELECT set_config('app.user_sub', :user_sub, true), pg_advisory_xact_lock(hashtextextended(:user_sub, 0))",
)


@dataclass(frozen=True, slots=True)
class Database:
    """A pool of connections of the plain role, with the ways in that row-level security allows."""

    engine: AsyncEngine

    @asynccontextmanager
    async def as_user(
        self,
        user_sub: str,
        authorised_at: datetime,
        *,
        durable: bool = True,
    ) -> AsyncIterator[AsyncConnection]:
        """Opens a transaction that sees and writes only this user's rows; commits at the end.

        It holds the user's lock in shared mode, so that an erasure waits for it and it for an erasure.
        ``durable=False`` does not wait for the disk at commit: a crash may lose the last moments' writes.

        Raises:
            UserErased: the user was erased at or after ``authorised_at``.
            DatabaseUnavailable: no connection, or it broke.
        """
        with _errors():
            async with self.engine.begin() as connection:
                enter = _ENTER if durable else _RELAX
                await connection.execute(enter, {"user_sub": user_sub, "authorised_at": authorised_at})
                yield connection

    @asynccontextmanager
    async def as_worker(self) -> AsyncIterator[AsyncConnection]:
        """Opens a transaction that sees of every user who waits in the queue, and nothing of what they wrote.

        Raises:
            DatabaseUnavailable: no connection, or it broke.
        """
        with _errors():
            async with self.engine.begin() as connection:
                await connection.execute(_QUEUE)
                yield connection

    @asynccontextmanager
    async def as_eraser(self, user_sub: str) -> AsyncIterator[AsyncConnection]:
        """Opens a transaction that sees only this user's rows and has them to itself; commits at the end.

        Raises:
            DatabaseUnavailable: no connection, or it broke, or the user's other transactions would not end.
        """
        with _errors():
            async with self.engine.begin() as connection:
                await connection.execute(_ERASE, {"user_sub": user_sub})
                yield connection


class _errors:  # noqa: N801 - reads as a statement: with _errors()
    """Turns a broken connection and the database's own refusals into casebank's errors."""

    def __enter__(self) -> None:
        """Nothing to prepare."""

    def __exit__(self, _type: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, DBAPIError):
            if sqlstate(error) == ERASED_SQLSTATE:
                raise UserErased("this user was erased; ask for a new token to begin again") from error
            if error.connection_invalidated or isinstance(error, InterfaceError) or _is_going_away(error):
                raise DatabaseUnavailable("the database connection broke") from error
        if isinstance(error, (TimeoutError, OSError, asyncpg.PostgresConnectionError, asyncpg.InterfaceError)):
            raise DatabaseUnavailable("the database does not answer") from error


def sqlstate(error: DBAPIError) -> str:
    """Returns the five-character SQLSTATE behind the error, or an empty string."""
    return str(getattr(error.orig, "sqlstate", None) or "")


def constraint(error: DBAPIError) -> str:
    """Returns the name of the constraint that the statement broke, or an empty string."""
    cause = getattr(error.orig, "__cause__", None)
    return str(getattr(cause, "constraint_name", None) or "")


def _is_going_away(error: DBAPIError) -> bool:
    """Returns whether Postgres is starting, stopping, or out of connections (SQLSTATE classes 08, 57P, 53300)."""
    return sqlstate(error).startswith(("08", "57P", "53300"))
