"""The revisions of the schema that come with the packages, read without alembic, which takes long to load."""

from pathlib import Path

import asyncpg

from app.postgres.pools import dsn

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
    connection = await asyncpg.connect(dsn(url))
    try:
        found: bool = await connection.fetchval("SELECT version_num = $1 FROM alembic_version", newest())
    except asyncpg.UndefinedTableError:
        return False
    finally:
        await connection.close()
    return found or False
