"""Opens transactions: as one user, who sees only their own rows, as the worker, who sees only the queue, and others."""

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import datetime

import asyncpg
from sqlalchemy import TextClause, text
from sqlalchemy.exc import DBAPIError, InterfaceError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from retrieval.database.fast_path import FastConnection
from retrieval.errors import DatabaseUnavailable, Deadlocked, SchemaOutdated, UserErased
from retrieval.telemetry import Outage

_ERASED = (
    "this user was erased, and the token may be older than the erasure: use a token issued after `tokens_issued_after`,"
    " or, as a service that acts for users, call `begin_again`"
)

ERASED_SQLSTATE = "CB410"
"""SQLSTATE that the database function casebank_enter raises for an erased user."""

_ENTER = text("SELECT casebank_enter(:user_sub, :authorised_at)")
_LOCK = text("SELECT casebank_set('app.user_sub', :user_sub), pg_advisory_xact_lock(hashtextextended(:user_sub, 0))")
_NAME = text("SELECT casebank_set('app.erased_name', :user_sub)")
_WORKER = text("SET LOCAL ROLE casebank_worker")
_OWNER = text("SET LOCAL ROLE NONE")
_ERASER = text("SET LOCAL ROLE casebank_eraser")

Transaction = AbstractAsyncContextManager[AsyncConnection]
"""A transaction, to open with ``async with``."""


@dataclass(frozen=True)
class Database:
    """Connections to the database in the service's role, which sees no rows until a transaction enters as a user.

    Attributes:
        engine: connections for transactions of several statements.
        erasing: connections for erasures; no time limits their statements, only their waits for locks.
        pool: connections for fast statements, each its own transaction; see ``retrieval.database.fast_path``.
        fast_begins_with: statement that gives a transaction the service's role, for a pooler that may give each
            transaction another session; None without such a pooler.
        citus: true if the tables are distributed over a Citus cluster.
        outage: notes for the log whether the database answers.
    """

    engine: AsyncEngine
    erasing: AsyncEngine
    pool: asyncpg.Pool
    fast_begins_with: str | None = None
    citus: bool = False
    outage: Outage = field(default_factory=lambda: Outage("database"))

    async def close_idle(self) -> None:
        """Closes the engine's connections that no transaction uses; the pool closes its own by itself."""
        await self.engine.dispose()

    def as_user(self, user_sub: str, authorised_at: datetime) -> Transaction:
        """Opens a transaction that sees and writes only this user's rows; commits at the end.

        The transaction holds the user's lock in shared mode, so that it and an erasure of the user wait for each other.

        Raises:
            UserErased: the user was erased at or after ``authorised_at``.
            DatabaseUnavailable: no connection, or it broke.
        """
        return self._begun(self.engine, (_ENTER, {"user_sub": user_sub, "authorised_at": authorised_at}))

    @asynccontextmanager
    async def fast(self, user_sub: str, authorised_at: datetime) -> AsyncIterator[FastConnection]:
        """Opens a connection for fast statements of this user, each of which enters as the user and commits by itself.

        With a pooler (``fast_begins_with``) and on a Citus cluster the statements commit together, at the end. See
        ``entered`` for how a statement enters as the user; a statement that does not sees no rows. On a Citus cluster
        the transaction enters first, because a shard has no table of erased users.

        Raises:
            UserErased: the user was erased at or after ``authorised_at``.
            DatabaseUnavailable: no connection, or it broke; the statement may have been done.
        """
        with _translated_errors(self.outage):
            async with self.pool.acquire() as driver:
                fast = FastConnection(driver, user_sub, authorised_at, self.citus)
                try:
                    if self.fast_begins_with is None and not self.citus:
                        yield fast
                    else:
                        async with driver.transaction():
                            if self.fast_begins_with is not None:
                                await driver.execute(self.fast_begins_with)
                            if self.citus:
                                await driver.execute("SELECT casebank_enter($1, $2)", user_sub, authorised_at)
                            yield fast
                except _LOST_COUNT:
                    driver.terminate()  # in an unknown state: it must not be used again
                    raise

    def as_worker(self, unerased: Mapping[str, datetime] | None = None) -> Transaction:
        """Opens a transaction that sees the queued work of all users, but not the texts in it.

        Args:
            unerased: users that must not have been erased since these times; until the transaction ends they cannot be.

        Raises:
            UserErased: one of these users was erased.
            DatabaseUnavailable: no connection, or it broke.
        """
        users = [{"user_sub": user_sub, "authorised_at": since} for user_sub, since in (unerased or {}).items()]
        return self._begun(self.engine, *((_ENTER, user) for user in users), (_WORKER, {}))

    def as_owner(self, operator: str, authorised_at: datetime) -> Transaction:
        """Opens a transaction in the role that DATABASE_URL names, which may own the tables; commits at the end.

        It is for an operator's commands, never for a request. If the transaction takes the service's role later, it is
        a transaction of the user ``operator``, whose audit records what was done.

        Raises:
            UserErased: the operator was erased at or after ``authorised_at``.
            DatabaseUnavailable: no connection, or it broke.
        """
        entered = {"user_sub": operator, "authorised_at": authorised_at}
        return self._begun(self.engine, (_ENTER, entered), (_OWNER, {}))

    def as_eraser(self, user_sub: str) -> Transaction:
        """Opens a transaction that sees only this user's rows, and is the only one that does; commits at the end.

        Raises:
            DatabaseUnavailable: no connection, or it broke, or the user's other transactions would not end.
        """
        return self._begun(self.erasing, (_LOCK, {"user_sub": user_sub}))

    def as_eraser_elsewhere(self, user_sub: str = "") -> Transaction:
        """Opens a transaction that sees all tombstones, and all rows of other users that name this user as writer.

        The transaction can only replace that name with the tombstone's, and change receipts. It commits at the end.

        Raises:
            DatabaseUnavailable: no connection, or it broke.
        """
        return self._begun(self.erasing, (_NAME, {"user_sub": user_sub}), (_ERASER, {}))

    @asynccontextmanager
    async def _begun(
        self, engine: AsyncEngine, *first: tuple[TextClause, Mapping[str, object]]
    ) -> AsyncIterator[AsyncConnection]:
        """Opens a transaction that begins with these statements; commits at the end."""
        with _translated_errors(self.outage):
            async with engine.begin() as connection:
                for statement, parameters in first:
                    await connection.execute(statement, parameters)
                yield connection


_LOST_COUNT = asyncpg.InternalClientError
"""Error that asyncpg raises if the connection dies while it sends a request."""

_UNAVAILABLE = {
    "08": "the database connection broke",
    "25006": "the database takes no writes: it is a standby or read-only, and DATABASE_URL must name the primary",
    "28": "the database refuses the login: check the user and the password of DATABASE_URL",
    "3D": "there is no such database: check its name in DATABASE_URL",
    "53": "the database is out of connections or memory: lower POOL_SIZE, or raise its max_connections or memory",
    "53100": "the disk of the database is full: free some space",
    "55P03": "another transaction holds what is to be changed: try again",
    "57P": "the database connection broke",  # Postgres is starting or stopping
}
"""Messages by SQLSTATE, by its first three characters, or by its class, the first two."""
_DEADLOCK = asyncpg.DeadlockDetectedError.sqlstate
_MISSING = {"42P01", "42703", "42883"}
"""SQLSTATE of a missing table, column and function."""
_ANSWERS = {"25006", "53100", "55P03", _DEADLOCK, *_MISSING}
"""SQLSTATE of refusals of a database that answers, so that there is no outage."""

_UNCOMMITTED = ("could not commit transaction for shard", "failure on connection marked as essential")
"""Messages of Citus, without a SQLSTATE of their own: a node failed when it was to commit."""

_NO_ANSWER = (TimeoutError, OSError, PoolTimeout, asyncpg.PostgresConnectionError, asyncpg.InterfaceError, _LOST_COUNT)


@contextmanager
def _translated_errors(outage: Outage) -> Iterator[None]:
    """Turns a broken connection and the database's own refusals into casebank's errors, and notes outages."""
    try:
        yield
    except BaseException as error:
        try:
            raise_own(error)
        except DatabaseUnavailable:
            if sqlstate(error) not in _ANSWERS:
                outage.goes_on(error)
            raise
        raise
    outage.is_over()


def raise_own(error: BaseException) -> None:
    """Raises the casebank error that stands for this error; returns if there is none."""
    if isinstance(error, DBAPIError | asyncpg.PostgresError):
        _translate(error, sqlstate(error))
    if isinstance(error, DBAPIError) and (error.connection_invalidated or isinstance(error, InterfaceError)):
        raise DatabaseUnavailable("the database connection broke") from error
    if isinstance(error, _NO_ANSWER):
        raise DatabaseUnavailable("the database does not answer") from error


def _translate(error: Exception, state: str) -> None:
    """Raises the casebank error that stands for this SQLSTATE; returns if there is none."""
    if state == ERASED_SQLSTATE:
        inner: BaseException | None = error  # SQLAlchemy and its adapter each wrap the driver's own error
        while inner is not None and not isinstance(inner, asyncpg.PostgresError):
            inner = getattr(inner, "orig", None) or inner.__cause__
        raise UserErased(_ERASED, None if inner is None else str(inner.detail)) from error
    if state in _MISSING:
        raise SchemaOutdated("the database's schema is not the one of this version: run casebank migrate") from error
    if "unsupported startup parameter" in str(error):
        raise DatabaseUnavailable(
            "a pooler before the database refuses what casebank asks of a session: if it pools transactions, add"
            " pgbouncer=true to DATABASE_URL"
        ) from error
    if state == _DEADLOCK:
        raise Deadlocked("the database ended this, for it and another waited for each other: try again") from error
    if state == asyncpg.InternalServerError.sqlstate and any(message in str(error) for message in _UNCOMMITTED):
        raise DatabaseUnavailable("a node of the cluster did not commit: try again") from error
    if message := _UNAVAILABLE.get(state) or _UNAVAILABLE.get(state[:3]) or _UNAVAILABLE.get(state[:2]):
        raise DatabaseUnavailable(message) from error


def sqlstate(error: BaseException) -> str:
    """Returns Postgres's five-character code (SQLSTATE) of the error, or an empty string if it has none."""
    return str(getattr(getattr(error, "orig", error), "sqlstate", None) or "")
