"""Moves a database's schema to a revision, by the migrations beside the packages."""

from pathlib import Path

from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection
from sqlalchemy.ext.asyncio import create_async_engine

from alembic import command
from app.db import asyncpg_url

CONFIGURATION = Path(__file__).parent.parent / "alembic.ini"


async def migrate(url: str, revision: str = "head", *, pgvector: str = "auto") -> None:
    """Moves the schema up or down to the revision; the URL must log in as the owner of the tables."""

    def move(connection: Connection, config: Config) -> None:
        # a revision below the current one is a downgrade; alembic wants to be told which
        go = command.downgrade if _is_below(connection, config, revision) else command.upgrade
        go(config, revision)

    await _with_config(url, move, pgvector=pgvector)


def _is_below(connection: Connection, config: Config, revision: str) -> bool:
    current = MigrationContext.configure(connection).get_current_revision()
    if revision == "base" or revision.startswith("-") or current is None:
        return revision == "base" or revision.startswith("-")
    passed = ScriptDirectory.from_config(config).iterate_revisions(current, "base")
    return revision in {each.revision for each in passed} - {current}


async def check(url: str) -> None:
    """Returns when the database has exactly the tables of the schema.

    Raises:
        alembic.util.exc.CommandError: it differs; the message says where.
    """
    await _with_config(url, lambda _connection, config: command.check(config), pgvector="auto")


async def _with_config(url: str, act: "object", *, pgvector: str) -> None:
    engine = create_async_engine(asyncpg_url(url))
    try:
        async with engine.begin() as connection:

            def run(sync: Connection) -> None:
                config = Config(CONFIGURATION)
                config.attributes["connection"] = sync
                config.attributes["pgvector"] = pgvector
                act(sync, config)  # type: ignore[operator]

            await connection.run_sync(run)
    finally:
        await engine.dispose()
