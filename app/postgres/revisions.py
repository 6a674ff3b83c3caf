"""The revisions of the schema in the packages, read without alembic, which takes long to load; their errors."""

from pathlib import Path

import asyncpg

from app.postgres.pools import one_connection
from retrieval.errors import CasebankError, DatabaseUnavailable


class SchemaInUse(DatabaseUnavailable):
    """A migration did not get the tables to itself in time, and changed nothing."""


class MigrationRefused(CasebankError):
    """The database or alembic refused, and nothing was changed; the text quotes their error in one line."""


PLACES = (Path(__file__).parents[1] / "migrations", Path(__file__).parents[2] / "alembic")
"""Folders of the migrations: inside the package in a wheel, beside it in a clone."""


def folder() -> Path:
    """Returns the folder of the migrations."""
    return next((place for place in PLACES if place.is_dir()), PLACES[0])


def newest() -> str:
    """Returns the name of the newest revision: names begin with a number, and files are called by them."""
    return max(file.stem for file in (folder() / "versions").glob("[0-9]*.py"))


async def is_newest(url: str) -> bool:
    """Returns whether the database is at the newest revision."""
    try:
        async with one_connection(url) as connection:
            found: bool = await connection.fetchval("SELECT version_num = $1 FROM alembic_version", newest())
    except asyncpg.UndefinedTableError:
        return False
    return found or False
