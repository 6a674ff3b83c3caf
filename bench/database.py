"""Databases of benchmarks on the embedded Postgres, for whoever needs nothing else of casebank."""

from pathlib import Path

import asyncpg

from app import postgres


async def created(home: Path, name: str) -> str:
    """Returns the URL of the database of that name; unless it is there, it is made, without tables."""
    server = postgres.start(home)
    admin = await asyncpg.connect(server.url("postgres").replace("+asyncpg", ""))
    if not await admin.fetchval("SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", name):
        await admin.execute(f"CREATE DATABASE {name}")
    await admin.close()
    return server.url(name)
