"""Connections to any cloud's Postgres by its URL: two pools that have the rights of the service's role alone."""

import re
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from math import ceil
from urllib.parse import parse_qsl, quote, urlencode
from uuid import uuid4

import asyncpg
import certifi
from sqlalchemy import NullPool, event
from sqlalchemy.engine.interfaces import DBAPICursor
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from retrieval.database.database import Database

SERVICE_ROLE = "casebank_service"

SCHEMES = ("postgresql", "postgres", "postgresql+asyncpg")
LIBPQ_ONLY = {
    *("channel_binding", "connect_timeout", "gssencmode", "sslcompression", "sslsni", "uselibpqcompat"),
    *("keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count", "tcp_user_timeout"),
}
"""URL parameters of other drivers; asyncpg would pass them on to the server, which refuses them."""
SSL_WORDS = {"true": "require", "1": "require", "false": "disable", "0": "disable"}
"""Values of other drivers' ``ssl=``, and the values of ``sslmode`` for them."""
POOLED = "pgbouncer"
"""URL parameter, as cloud providers spell it, for a pooler that may give each transaction another session."""
CITUS = "citus"
"""URL parameter for the coordinator of a Citus cluster over which `casebank migrate` distributes the tables."""
_AS_SERVICE = f"SET LOCAL ROLE {SERVICE_ROLE}"
USUAL_IDLE_S = 300.0
"""Seconds after which an unused connection for fast statements is closed, in a process that never rests."""
ANY_LENGTH = {"max_cacheable_statement_size": 0}
"""Option of asyncpg: without it, a statement of more than 15 kB is parsed and planned each time."""
BATCH_BYTES = 96 * 1024
"""Bytes of rows that are sent at a time; asyncpg waits, while it sends, from 128 KiB on."""
_PORT = re.compile(r"\d+(?:[/?]|$)")
"""A port behind a colon, and no password before an @, which may stand in the path or the parameters: `db:5432/a@b`."""
_NAMELESS: dict[str, object] = {
    "statement_cache_size": 0,
    "prepared_statement_cache_size": 0,
    "prepared_statement_name_func": lambda: f"casebank_{uuid4().hex}",  # no two sessions' may meet
}
"""Options for sessions of a pooler: a statement is never prepared in one transaction and used in another."""


@asynccontextmanager
async def one_connection(url: str) -> AsyncIterator[asyncpg.Connection]:
    """Yields a connection with the rights of the URL's login, and closes it at the end of the block."""
    connection = await asyncpg.connect(dsn(url))
    try:
        yield connection
    finally:
        await connection.close()


@asynccontextmanager
async def service_database(
    url: str, *, pool_size: int = 10, timeout_s: float = 10.0, idle_s: float = 0.0
) -> AsyncIterator[Database]:
    """Yields the database with the rights of the service's role, whatever login the URL names.

    Up to ``pool_size`` connections for transactions, and another ``pool_size`` for fast statements, are opened when
    they are needed, beside one that listens for work. ``timeout_s`` limits each wait: for a connection, and for the
    answer to a statement. Each transaction of an erasure opens a connection of its own, where a statement may change
    any number of rows and ``timeout_s`` limits only the wait for a lock. A connection for fast statements is closed
    when it was not used for ``idle_s``; 0: for USUAL_IDLE_S.
    """
    pooled = is_pooled(url)
    session = {"application_name": "casebank"} | ({} if pooled else {"role": SERVICE_ROLE, "jit": "off"})
    options: dict[str, object] = {"command_timeout": timeout_s, "timeout": timeout_s, "server_settings": session}
    engine = engine_of(
        url,
        pool_size=pool_size,
        max_overflow=0,
        pool_pre_ping=False,  # a broken connection is reported as such; the pool drops it and the client tries again
        pool_timeout=timeout_s,
        hide_parameters=True,  # a printed error must not quote a user's name or words
        connect_args=options,
    )
    erasing = engine_of(
        url, poolclass=NullPool, hide_parameters=True, connect_args={**options, "command_timeout": None}
    )
    begins_with = f"SET LOCAL lock_timeout = {ceil(1000 * timeout_s)}"
    event.listen(erasing.sync_engine, "begin", lambda connection: connection.exec_driver_sql(begins_with))
    if pooled:
        # the next transaction may get another session, so each takes the role when it begins
        for each in (engine, erasing):
            event.listen(each.sync_engine, "begin", lambda connection: connection.exec_driver_sql(_AS_SERVICE))
        options["statement_cache_size"] = 0
    most = pool_size + (not pooled)  # one listens, which a pooler in transaction mode does not allow
    if not pooled and not is_citus(url):  # Citus needs the values to choose a shard
        # else Postgres plans anew, each time, what depends on the length of an array, for longer than it runs
        options["server_settings"] = session | {"plan_cache_mode": "force_generic_plan"}
    pool = asyncpg.create_pool(
        dsn(url),
        min_size=0,
        max_size=most,
        max_inactive_connection_lifetime=idle_s or USUAL_IDLE_S,
        reset=_as_it_is,
        **options,
        **ANY_LENGTH,
    )
    try:
        async with pool:
            yield Database(engine, erasing, pool, fast_begins_with=_AS_SERVICE if pooled else None, citus=is_citus(url))
    finally:
        await engine.dispose()


async def _as_it_is(_connection: asyncpg.Connection) -> None:
    """Returns a fast connection to its pool unchanged.

    asyncpg would reset the session, which costs a round trip; the statements of a fast connection change no session.
    """


def engine_of(url: str, *, connect_args: dict[str, object] | None = None, **options: object) -> AsyncEngine:
    """Returns an engine whose connections asyncpg opens by the URL: SQLAlchemy reads some URLs in another way."""
    arguments = {"dsn": dsn(url), **(_NAMELESS if is_pooled(url) else {}), **(connect_args or {})}
    engine = create_async_engine("postgresql+asyncpg://", connect_args=arguments, **options)
    event.listen(engine.sync_engine, "do_executemany", _send_in_batches)
    return engine


def _send_in_batches(cursor: DBAPICursor, statement: str, rows: Sequence[Sequence[object]], _context: object) -> bool:
    """Executes a statement for many rows, at most BATCH_BYTES of them at a time; returns True: it was executed.

    A task that is cancelled while asyncpg 0.32 sends more than that keeps the connection until the statement times
    out, and then sees a TimeoutError in place of its cancellation.
    """
    batch, held = list[Sequence[object]](), 0
    for row in rows:
        size = sum(map(_bytes_at_most, row))
        if batch and held + size > BATCH_BYTES:
            cursor.executemany(statement, batch)
            batch, held = [], 0
        batch.append(row)
        held += size
    cursor.executemany(statement, batch)
    return True


def _bytes_at_most(value: object) -> int:
    """Returns an upper bound of the bytes in which a value is sent."""
    if isinstance(value, str):
        return len(value) if value.isascii() else 4 * len(value)
    if isinstance(value, bytes):
        return len(value)
    return sum(map(_bytes_at_most, value)) if isinstance(value, list) else 64


def dsn(url: str) -> str:
    """Returns the URL in asyncpg's form, with the parameters of other drivers translated or left out.

    Raises:
        ValueError: the URL is not of a Postgres, or a port is no number; the message does not repeat it.
    """
    scheme, colon, rest = url.partition("://")
    if scheme not in SCHEMES or not colon:
        raise ValueError("DATABASE_URL must begin with postgresql://")
    address, _, query = _encoded(rest).partition("?")
    for host in address.partition("/")[0].rpartition("@")[2].split(","):
        port = host.rpartition("]")[2].partition(":")[2]
        if port and not (port.isascii() and port.isdecimal()):
            raise ValueError("DATABASE_URL: the port behind the host must be a number")
    parameters = [_translated(name, value) for name, value in parse_qsl(query, keep_blank_values=True)]
    kept = [(name, value) for name, value in parameters if name not in {*LIBPQ_ONLY, POOLED, CITUS}]
    return f"postgresql://{address}" + (f"?{urlencode(kept, quote_via=quote)}" if kept else "")


def is_pooled(url: str) -> bool:
    """Returns whether the URL names a pooler in transaction mode."""
    return _is_on(url, POOLED)


def is_citus(url: str) -> bool:
    """Returns whether the URL names the coordinator of a Citus cluster."""
    return _is_on(url, CITUS)


def _is_on(url: str, parameter: str) -> bool:
    return dict(parse_qsl(url.rpartition("?")[2])).get(parameter, "").lower() in {"true", "1"}


def _encoded(rest: str) -> str:
    """Returns the part of a URL after its scheme, with the signs of an unencoded password percent-encoded."""
    for part in (rest.partition("?")[0], rest):  # the second, for a password with a question mark
        login, at, place = part.rpartition("@")
        name, colon, password = login.partition(":")
        is_login = "/" in place or not _PORT.match(password)
        if at and colon and is_login and not set("/?") & set(name):
            return f"{name}:{quote(password, safe='%')}@{place}{rest[len(part) :]}"
    return rest


def _translated(name: str, value: str) -> tuple[str, str]:
    if name == "ssl":
        return "sslmode", SSL_WORDS.get(value.lower(), value)
    if (name, value) == ("sslrootcert", "system"):
        return "sslrootcert", ssl.get_default_verify_paths().cafile or certifi.where()
    return name, value
