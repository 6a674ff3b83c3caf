"""Checks of the database: its versions, its schema, and its access rights."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import uuid4

from alembic.script import ScriptDirectory
from sqlalchemy import func, select, text

from app.doctor.finding import Finding
from app.doctor.installation import Installation
from app.postgres.migrate import configuration, unknown_revision
from app.postgres.pools import SERVICE_ROLE
from app.runtime import has_pgvector
from retrieval.patterns import read
from retrieval.search.candidates import Measured, Search, candidates, vectors
from retrieval.tables.metadata import USER_TABLES, metadata

_SQL = read("app.postgres", "statements.toml")["doctor"]

OLDEST_POSTGRES = 150_000
OLDEST_PGVECTOR = (0, 8)
SKEW = timedelta(seconds=2)
LARGE_BYTES = 1_000_000
"""Bytes from which a table is listed by itself; an empty one with its indexes has some tens of thousands."""


async def postgres(installation: Installation) -> Finding:
    """Judges the server's version."""
    async with installation.owner.connect() as connection:
        number = int(str(await connection.scalar(text("SHOW server_version_num"))))
        name = await connection.scalar(text("SHOW server_version"))
    return Finding("postgres", number >= OLDEST_POSTGRES, f"PostgreSQL {name}", "casebank needs 15 or newer")


async def pgvector(installation: Installation) -> Finding:
    """Judges the version of pgvector, if it is installed."""
    async with installation.owner.connect() as connection:
        version = await connection.scalar(text("SELECT extversion FROM pg_extension WHERE extname = 'vector'"))
    if version is None:
        return Finding("pgvector", ok=None, detail="not installed: the service compares vectors by itself, more slowly")
    new_enough = tuple(map(int, version.split(".")[:2])) >= OLDEST_PGVECTOR
    return Finding(
        "pgvector", new_enough, f"pgvector {version}", "as a superuser: ALTER EXTENSION vector UPDATE, to 0.8 or newer"
    )


async def schema(installation: Installation) -> Finding:
    """Judges whether the tables are those of this version of casebank."""
    head = ScriptDirectory.from_config(configuration()).get_current_head()
    async with installation.owner.connect() as connection:
        known = await connection.scalar(text("SELECT to_regclass('alembic_version') IS NOT NULL"))
        revision = await connection.scalar(text("SELECT version_num FROM alembic_version")) if known else None
    advice = unknown_revision(revision) or "casebank migrate"
    return Finding("schema", revision == head, f"revision {revision}, head {head}", advice)


async def role(installation: Installation) -> Finding:
    """Judges whether the service's role owns no table and bypasses no row security."""
    async with installation.database.engine.connect() as connection:
        name, is_plain = (await connection.execute(text(_SQL["acting_role"]))).one()
    detail = f"the service acts as {name}: {'owns nothing, bypasses nothing' if is_plain else 'NOT a plain role'}"
    return Finding(
        "role", is_plain, detail, f"as a superuser: ALTER ROLE {name} NOSUPERUSER NOBYPASSRLS, and let it own no table"
    )


async def login(installation: Installation) -> Finding:
    """Warns if the login of DATABASE_URL could read past row-level security, were it not for the service's role."""
    async with installation.owner.connect() as connection:
        name, is_superuser, bypasses, owns = (await connection.execute(text(_SQL["login"]))).one()
    if not installation.settings.database_url:
        return Finding("login", ok=None, detail=f"{name}, of the embedded Postgres, which no network reaches")
    powers = {"is a superuser": is_superuser, "has BYPASSRLS": bypasses, "owns tables": owns}
    held = " and ".join(power for power, has in powers.items() if has)
    if not held:
        return Finding("login", ok=True, detail=f"{name} is no superuser, bypasses nothing, owns nothing")
    return Finding(
        "login",
        ok=None,
        detail=f"{name} {held}: users are kept apart only while each connection stays {SERVICE_ROLE}",
        advice="give the service a login of its own (docs/deploy.md, The database); this one is for casebank migrate",
    )


async def row_security(installation: Installation) -> Finding:
    """Judges whether row-level security is forced on every table."""
    async with installation.owner.connect() as connection:
        open_tables = sorted(set(metadata.tables) - set((await connection.scalars(text(_SQL["row_security"]))).all()))
    detail = f"not forced on {', '.join(open_tables)}" if open_tables else f"forced on {len(metadata.tables)} tables"
    return Finding("row security", not open_tables, detail, "as the owner: ALTER TABLE … FORCE ROW LEVEL SECURITY")


async def isolation(installation: Installation) -> Finding:
    """Judges whether an unknown user, who asks for all rows, sees none."""
    async with installation.database.as_user(f"doctor-{uuid4()}", datetime.now(UTC)) as connection:
        seen = [t.name for t in USER_TABLES if await connection.scalar(select(select(t.c.user_sub).exists()))]
    detail = f"a stranger sees rows of {', '.join(seen)}" if seen else "a stranger sees no rows"
    return Finding("isolation", not seen, detail, "stop the service: users can read each other")


async def clock(installation: Installation) -> Finding:
    """Judges the difference between the database's clock and this machine's."""
    async with installation.owner.connect() as connection:
        before = datetime.now(UTC)
        there = (await connection.execute(select(func.clock_timestamp()))).scalar_one()
        skew = there - (before + (datetime.now(UTC) - before) / 2)
    detail = f"the database is {skew.total_seconds():+.3f} s off"
    return Finding("clock", abs(skew) <= SKEW, detail, "set both clocks by NTP: erasures go by token and database time")


async def indexes(installation: Installation) -> Finding:
    """Judges whether every index of the schema exists and is valid."""
    wanted = {str(index.name) for table in metadata.tables.values() for index in table.indexes}
    async with installation.owner.connect() as connection:
        missing = sorted(wanted - set((await connection.scalars(text(_SQL["indexes"]))).all()))
    detail = f"missing: {', '.join(missing)}" if missing else f"all {len(wanted)} are there"
    advice = "make them as the migrations do, or restore a backup: without them the queue and searches get slow"
    return Finding("indexes", not missing, detail, advice)


async def search(installation: Installation) -> Finding:
    """Judges whether the statements of a retrieve run, with vectors, for an unknown user."""
    vector = [1.0] + [0.0] * (installation.embedder.dimension - 1)
    question = Search("doctor", "how is the memory today?", vector, installation.embedder.model)
    in_database = await has_pgvector(installation.database)
    async with installation.database.fast(f"doctor-{uuid4()}", datetime.now(UTC)) as connection:
        if not in_database:
            await connection.all(*vectors(question))
            question = replace(question, measured=Measured([], []))
        await connection.all(*candidates(question))
    return Finding("search", ok=True, detail="the statements of a retrieve run")


async def sizes(installation: Installation) -> Finding:
    """Reports the size of all tables, and of each large one."""
    async with installation.owner.connect() as connection:
        rows = (await connection.execute(text(_SQL["sizes"]), {"names": list(metadata.tables)})).all()
    total = f"{sum(size for _, size in rows) / 1e6:.1f} MB in {len(rows)} tables"
    large = [f"{name} {size / 1e6:.1f} MB" for name, size in rows if size >= LARGE_BYTES]
    return Finding("sizes", ok=None, detail=": ".join(filter(None, (total, ", ".join(large)))))
