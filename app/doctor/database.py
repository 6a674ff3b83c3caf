"""Checks of the database, or of the Citus cluster that it is: versions, schema, nodes, and access rights."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

from alembic.script import ScriptDirectory
from sqlalchemy import func, select, text

from app.doctor.installation import CheckResult, Installation
from app.postgres.citus import BY_USER, DISTRIBUTED, EVERYWHERE
from app.postgres.migrate import configuration, unknown_revision
from app.postgres.pools import SERVICE_ROLE
from app.runtime import has_pgvector
from retrieval.patterns import read
from retrieval.search.candidates import CandidateReader, CaseSearch
from retrieval.tables.metadata import USER_TABLES, metadata

_SQL = read("app.postgres", "statements.toml")["doctor"]

OLDEST_POSTGRES = 150_000
OLDEST_PGVECTOR = (0, 8)
SKEW = timedelta(seconds=2)
LARGE_BYTES = 1_000_000
"""Bytes from which a table is listed by itself; an empty one with its indexes has some tens of thousands."""


async def postgres(installation: Installation) -> CheckResult:
    """Judges the server's version."""
    async with installation.owner.connect() as connection:
        number = int(str(await connection.scalar(text("SHOW server_version_num"))))
        name = await connection.scalar(text("SHOW server_version"))
    return CheckResult(number >= OLDEST_POSTGRES, f"PostgreSQL {name}", "casebank needs 15 or newer")


async def pgvector(installation: Installation) -> CheckResult:
    """Judges the version of pgvector, if it is installed."""
    async with installation.owner.connect() as connection:
        version = await connection.scalar(text("SELECT extversion FROM pg_extension WHERE extname = 'vector'"))
    if version is None:
        return CheckResult(ok=None, detail="not installed: the service compares vectors by itself, more slowly")
    new_enough = tuple(map(int, version.split(".")[:2])) >= OLDEST_PGVECTOR
    return CheckResult(
        new_enough, f"pgvector {version}", "as a superuser: ALTER EXTENSION vector UPDATE, to 0.8 or newer"
    )


async def schema(installation: Installation) -> CheckResult:
    """Judges whether the tables are those of this version of casebank."""
    head = ScriptDirectory.from_config(configuration()).get_current_head()
    async with installation.owner.connect() as connection:
        known = await connection.scalar(text("SELECT to_regclass('alembic_version') IS NOT NULL"))
        revision = await connection.scalar(text("SELECT version_num FROM alembic_version")) if known else None
    advice = unknown_revision(revision) or "casebank migrate"
    return CheckResult(revision == head, f"revision {revision}, head {head}", advice)


async def role(installation: Installation) -> CheckResult:
    """Judges whether the service's role owns no table and bypasses no row security."""
    async with installation.database.engine.connect() as connection:
        name, is_plain = (await connection.execute(text(_SQL["acting_role"]))).one()
    detail = f"the service acts as {name}: {'owns nothing, bypasses nothing' if is_plain else 'NOT a plain role'}"
    return CheckResult(
        is_plain, detail, f"as a superuser: ALTER ROLE {name} NOSUPERUSER NOBYPASSRLS, and let it own no table"
    )


async def login(installation: Installation) -> CheckResult:
    """Warns if the login of DATABASE_URL could read past row-level security, were it not for the service's role."""
    async with installation.owner.connect() as connection:
        name, is_superuser, bypasses, owns = (await connection.execute(text(_SQL["login"]))).one()
    if not installation.settings.database_url:
        return CheckResult(ok=None, detail=f"{name}, of the embedded Postgres, which no network reaches")
    powers = {"is a superuser": is_superuser, "has BYPASSRLS": bypasses, "owns tables": owns}
    held = " and ".join(power for power, has in powers.items() if has)
    if not held:
        return CheckResult(ok=True, detail=f"{name} is no superuser, bypasses nothing, owns nothing")
    return CheckResult(
        ok=None,
        detail=f"{name} {held}: users are kept apart only while each connection stays {SERVICE_ROLE}",
        advice="give the service a login of its own (docs/deploy.md, The database); this one is for casebank migrate",
    )


async def row_security(installation: Installation) -> CheckResult:
    """Judges whether row-level security is forced on every table."""
    async with installation.owner.connect() as connection:
        open_tables = sorted(set(metadata.tables) - set((await connection.scalars(text(_SQL["row_security"]))).all()))
    detail = f"not forced on {', '.join(open_tables)}" if open_tables else f"forced on {len(metadata.tables)} tables"
    return CheckResult(not open_tables, detail, "as the owner: ALTER TABLE … FORCE ROW LEVEL SECURITY")


async def isolation(installation: Installation) -> CheckResult:
    """Judges whether an unknown user, who asks for all rows, sees none."""
    async with installation.database.as_user(f"doctor-{uuid4()}", datetime.now(UTC)) as connection:
        seen = [t.name for t in USER_TABLES if await connection.scalar(select(select(t.c.user_sub).exists()))]
    detail = f"a stranger sees rows of {', '.join(seen)}" if seen else "a stranger sees no rows"
    return CheckResult(not seen, detail, "stop the service: users can read each other")


async def clock(installation: Installation) -> CheckResult:
    """Judges the difference between the database's clock and this machine's."""
    async with installation.owner.connect() as connection:
        before = datetime.now(UTC)
        there = (await connection.execute(select(func.clock_timestamp()))).scalar_one()
        skew = there - (before + (datetime.now(UTC) - before) / 2)
    detail = f"the database is {skew.total_seconds():+.3f} s off"
    return CheckResult(abs(skew) <= SKEW, detail, "set both clocks by NTP: erasures go by token and database time")


async def indexes(installation: Installation) -> CheckResult:
    """Judges whether every index of the schema exists and is valid."""
    wanted = {str(index.name) for table in metadata.tables.values() for index in table.indexes}
    async with installation.owner.connect() as connection:
        missing = sorted(wanted - set((await connection.scalars(text(_SQL["indexes"]))).all()))
    detail = f"missing: {', '.join(missing)}" if missing else f"all {len(wanted)} are there"
    advice = "make them as the migrations do, or restore a backup: without them the queue and searches get slow"
    return CheckResult(not missing, detail, advice)


async def search(installation: Installation) -> CheckResult:
    """Judges whether the statements of a retrieve run, with vectors, for an unknown user."""
    vector = [1.0] + [0.0] * (installation.embedder.dimension - 1)
    question = CaseSearch("doctor", "how is the memory today?", vector, installation.embedder.model)
    in_database = await has_pgvector(installation.database)
    async with installation.database.fast(f"doctor-{uuid4()}", datetime.now(UTC)) as connection:
        await CandidateReader().read(connection, question, pgvector=in_database)
    return CheckResult(ok=True, detail="the statements of a retrieve run")


async def sizes(installation: Installation) -> CheckResult:
    """Reports the size of all tables, and of each large one."""
    async with installation.owner.connect() as connection:
        rows = (await connection.execute(text(_SQL["sizes"]), {"names": list(metadata.tables)})).all()
    total = f"{sum(size for _, size in rows) / 1e6:.1f} MB in {len(rows)} tables"
    large = [f"{name} {size / 1e6:.1f} MB" for name, size in rows if size >= LARGE_BYTES]
    return CheckResult(ok=None, detail=": ".join(filter(None, (total, ", ".join(large)))))


_MIGRATE = "casebank migrate --citus, with the owner's login"


async def cluster(installation: Installation) -> CheckResult:
    """Judges whether the tables are distributed as ``citus=true`` says, and the nodes are active with all rights."""
    async with installation.owner.connect() as connection:
        there: set[str] = set()
        if await connection.scalar(text("SELECT count(*) FROM pg_extension WHERE extname = 'citus'")):
            there = set((await connection.scalars(text(DISTRIBUTED))).all()) & {*BY_USER, *EVERYWHERE}
        if not there:
            if not installation.database.citus:
                return CheckResult(ok=None, detail="none: all tables are on one Postgres")
            advice = f"{_MIGRATE}; or leave citus=true out of DATABASE_URL"
            return CheckResult(ok=False, detail="citus=true, and no table is distributed", advice=advice)
        nodes = (await connection.execute(text(_SQL["nodes"]))).all()
        tells_nodes = await connection.scalar(text("SELECT current_setting('citus.propagate_set_commands') = 'local'"))
        untold = await connection.scalar(text(_SQL["untold"]))
    missing = sorted({*BY_USER, *EVERYWHERE} - there)
    away = [node.name for node in nodes if not node.isactive]
    faults = {
        "DATABASE_URL lacks citus=true": not installation.database.citus and "add citus=true to DATABASE_URL",
        f"not distributed: {', '.join(missing)}": missing and _MIGRATE,
        "nodes are not told who the user is": not tells_nodes and _MIGRATE,
        f"the worker lacks its rights on {untold} shards": untold and _MIGRATE,
        f"not active: {', '.join(away)}": away and "citus_activate_node(), once the node answers",
    }
    found = {fault: advice for fault, advice in faults.items() if advice}
    detail = f"{len(there)} tables over {len(nodes)} nodes" + "".join(f"; {fault}" for fault in found)
    return CheckResult(not found, detail, "; ".join(dict.fromkeys(map(str, found.values()))))
