"""The doctor: looks at everything that a support person would ask about, and says what to do."""

import platform
import shutil
import stat
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from importlib.util import find_spec
from uuid import uuid4

from alembic.config import Config
from alembic.script import ScriptDirectory
from pydantic import BaseModel
from sqlalchemy import func, select, text
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from app.db import asyncpg_url, service_database
from app.job_records import JobRecord, all_records
from app.migrate import CONFIGURATION
from app.runtime import make_embedder, make_model, owner_url
from app.schedule import periods
from app.settings import Settings
from retrieval.database.database import Database
from retrieval.errors import CasebankError
from retrieval.ports import Embedder
from retrieval.schema import USER_TABLES, metadata, profiles
from writer.privacy.keys import Keyring
from writer.worker import queue

OLDEST_POSTGRES = 150_000
OLDEST_PGVECTOR = (0, 8)
FREE_BYTES = 1 << 30
SKEW = timedelta(seconds=2)
WAIT = timedelta(minutes=10)
SAMPLE = 20
"""How many users' keys are tried."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found; ``ok`` is None where there was nothing to judge."""

    name: str
    ok: bool | None
    detail: str
    advice: str = ""


@dataclass(frozen=True, slots=True)
class _Patient:
    """What the checks look at."""

    settings: Settings
    owner: AsyncEngine
    database: Database
    embedder: Embedder


_Check = Callable[[_Patient], Awaitable[Finding]]


async def examine(settings: Settings) -> list[Finding]:
    """Returns the findings of every check, in a fixed order; a check that breaks is a finding, too."""
    findings = [_software(), _training(settings), _disk(settings), _secrets(settings)]
    try:
        async with _patient(settings) as patient:
            findings.append(Finding("connection", ok=True, detail=_where(settings)))
            findings += [await _guarded(check, patient) for check in CHECKS]
    except Exception as error:  # noqa: BLE001 - whatever it was, the report must come out
        advice = "is the database running, and DATABASE_URL right? see postgres.log in the home folder"
        findings.append(Finding("connection", ok=False, detail=f"{_where(settings)}: {_said(error)}", advice=advice))
    return findings


@asynccontextmanager
async def _patient(settings: Settings) -> AsyncIterator[_Patient]:
    async with owner_url(settings) as url:
        timeout_s = settings.database_timeout_s
        owner = create_async_engine(asyncpg_url(url), connect_args={"timeout": timeout_s, "command_timeout": timeout_s})
        embedder = make_embedder(settings)
        try:
            async with owner.connect() as connection:
                await connection.execute(text("SELECT 1"))
            async with service_database(url, pool_size=1, timeout_s=timeout_s) as database:
                yield _Patient(settings, owner, database, embedder)
        finally:
            await embedder.aclose()
            await owner.dispose()


async def _guarded(check: _Check, patient: _Patient) -> Finding:
    try:
        return await check(patient)
    except Exception as error:  # noqa: BLE001 - as above
        name = check.__name__.strip("_").replace("_", " ")
        return Finding(
            name, ok=False, detail=_said(error), advice="the check itself failed: look at the ones before it"
        )


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0][:200]


def _where(settings: Settings) -> str:
    return "DATABASE_URL" if settings.database_url else f"embedded Postgres in {settings.home}"


def _software() -> Finding:
    return Finding("software", ok=True, detail=f"casebank {version('casebank')}, Python {platform.python_version()}")


def _training(settings: Settings) -> Finding:
    if find_spec("torch") is not None:
        return Finding("training", ok=True, detail="torch is installed; `casebank train` can run")
    wanted = settings.train_every_s > 0
    detail = "torch is not installed: nothing is learned here"
    return Finding(
        "training",
        None if not wanted else False,
        detail,
        "pip install 'casebank[train]', or set CASEBANK_TRAIN_EVERY_S=0",
    )


def _disk(settings: Settings) -> Finding:
    folder = next(path for path in (settings.home, *settings.home.absolute().parents) if path.exists())
    free = shutil.disk_usage(folder).free
    return Finding("disk", free >= FREE_BYTES, f"{free / 1e9:.1f} GB free at {folder}", "free some space")


def _secrets(settings: Settings) -> Finding:
    path = settings.home / "secrets.json"
    if not path.exists():
        return Finding("secrets", ok=None, detail="no secrets.json: made on first use, or not needed")
    mode = stat.S_IMODE(path.stat().st_mode)
    return Finding("secrets", not mode & 0o077, f"mode {mode:04o}, {path}", f"chmod 600 {path}")


async def _postgres(patient: _Patient) -> Finding:
    async with patient.owner.connect() as connection:
        number = int(str(await connection.scalar(text("SHOW server_version_num"))))
        name = await connection.scalar(text("SHOW server_version"))
    return Finding("postgres", number >= OLDEST_POSTGRES, f"PostgreSQL {name}", "casebank needs 15 or newer")


async def _pgvector(patient: _Patient) -> Finding:
    async with patient.owner.connect() as connection:
        found = await connection.scalar(text("SELECT extversion FROM pg_extension WHERE extname = 'vector'"))
    if found is None:
        return Finding("pgvector", ok=None, detail="not installed: the service compares vectors by itself, more slowly")
    new_enough = tuple(map(int, found.split(".")[:2])) >= OLDEST_PGVECTOR
    return Finding("pgvector", new_enough, f"pgvector {found}", "ALTER EXTENSION vector UPDATE, to 0.8 or newer")


async def _schema(patient: _Patient) -> Finding:
    head = ScriptDirectory.from_config(Config(CONFIGURATION)).get_current_head()
    async with patient.owner.connect() as connection:
        known = await connection.scalar(text("SELECT to_regclass('alembic_version') IS NOT NULL"))
        revision = await connection.scalar(text("SELECT version_num FROM alembic_version")) if known else None
    return Finding("schema", revision == head, f"revision {revision}, head {head}", "casebank migrate")


async def _role(patient: _Patient) -> Finding:
    plain = text(
        "SELECT rolname, NOT rolsuper AND NOT rolbypassrls AND NOT EXISTS"
        " (SELECT FROM pg_class WHERE relowner = pg_roles.oid AND relnamespace = 'public'::regnamespace)"
        " FROM pg_roles WHERE rolname = current_user",
    )
    async with patient.database.engine.connect() as connection:
        name, is_plain = (await connection.execute(plain)).one()
    detail = f"the service acts as {name}: {'owns nothing, bypasses nothing' if is_plain else 'NOT a plain role'}"
    return Finding("role", is_plain, detail, f"ALTER ROLE {name} NOSUPERUSER NOBYPASSRLS, and let it own no table")


async def _row_security(patient: _Patient) -> Finding:
    forced = text(
        "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace"
        " AND relrowsecurity AND relforcerowsecurity",
    )
    async with patient.owner.connect() as connection:
        open_tables = sorted(set(metadata.tables) - set((await connection.scalars(forced)).all()))
    detail = f"not forced on {', '.join(open_tables)}" if open_tables else f"forced on {len(metadata.tables)} tables"
    return Finding("row security", not open_tables, detail, "ALTER TABLE … FORCE ROW LEVEL SECURITY")


async def _strangers(patient: _Patient) -> Finding:
    """Looks as a user whom nobody knows, who must see nothing; deliberately asks for everybody's rows."""
    async with patient.database.as_user(f"doctor-{uuid4()}", datetime.now(UTC)) as connection:
        seen = [t.name for t in USER_TABLES if await connection.scalar(select(select(t.c.user_sub).exists()))]
    detail = f"a stranger sees rows of {', '.join(seen)}" if seen else "a stranger sees nobody's rows"
    return Finding("strangers", not seen, detail, "stop the service: users can read each other")


async def _clock(patient: _Patient) -> Finding:
    async with patient.owner.connect() as connection:
        before = datetime.now(UTC)
        there = (await connection.execute(select(func.clock_timestamp()))).scalar_one()
        skew = there - (before + (datetime.now(UTC) - before) / 2)
    detail = f"the database is {skew.total_seconds():+.3f} s off"
    return Finding("clock", abs(skew) <= SKEW, detail, "set both clocks by NTP: erasures go by token and database time")


async def _queue(patient: _Patient) -> Finding:
    async with patient.database.as_worker() as connection:
        found = {row.status: row for row in await connection.execute(queue.depth())}
        now = (await connection.execute(select(func.now()))).scalar_one()
    pending, dead = found.get("pending"), found.get("dead")
    age = now - pending.oldest if pending else timedelta()
    detail = f"{pending.cases if pending else 0} pending, {dead.cases if dead else 0} dead"
    if pending:
        detail += f", the oldest for {age.total_seconds():.0f} s"
    advice = "casebank requeue, once the cause is gone" if dead else "is a worker running? casebank worker"
    return Finding("queue", dead is None and age <= WAIT, detail, advice)


async def _jobs(patient: _Patient) -> Finding:
    """Judges the jobs that these settings ask for; that they never ran is nothing to judge."""
    async with patient.database.as_worker() as connection:
        known = await all_records(connection)
    wanted = periods(patient.settings)
    here = [(job, wanted[job.name]) for job in known if job.name in wanted]
    if not here:
        return Finding("jobs", ok=None, detail="no service has run here yet")
    well = all(job.last_error is None and job.age <= 2 * every + WAIT for job, every in here)
    detail = "; ".join(_how_it_went(job) for job, _ in here)
    return Finding("jobs", well, detail, "is a service running? its log says job.failed, and why a job did")


def _how_it_went(job: JobRecord) -> str:
    ago = "never succeeded" if job.since_success is None else f"succeeded {_seconds(job.since_success)} ago"
    return f"{job.name} {ago}" + (f", failed {job.failures} times since: {job.last_error}" if job.last_error else "")


def _seconds(age: timedelta) -> str:
    return f"{age.total_seconds():.0f} s"


async def _keys(patient: _Patient) -> Finding:
    keyring, opened = Keyring(patient.settings.master_key_bytes), 0
    async with patient.database.as_worker() as connection:
        sample = select(profiles.c.user_sub).distinct().order_by(profiles.c.user_sub).limit(SAMPLE)
        users = (await connection.scalars(sample)).all()
    for user_sub in users:
        async with patient.database.as_user(user_sub, datetime.now(UTC)) as connection:
            try:
                opened += await keyring.find(connection, user_sub) is not None
            except Exception as error:  # noqa: BLE001 - any failure to open a key is the finding
                advice = "CASEBANK_MASTER_KEY or secrets.json is not the one that these keys were made with"
                return Finding("keys", ok=False, detail=f"a user's key does not open: {_said(error)}", advice=advice)
    return Finding("keys", True if opened else None, f"the master key opens {opened} of {len(users)} users' keys tried")


async def _embedder(patient: _Patient) -> Finding:
    embedder = patient.embedder
    advice = "check CASEBANK_EMBEDDER and CASEBANK_OPENAI_…; until then searches go by keywords"
    try:
        vectors = await embedder.embed(["how is the memory today?"])
    except Exception as error:  # noqa: BLE001 - any failure to embed is the finding
        return Finding("embedder", ok=False, detail=f"{embedder.model}: {_said(error)}", advice=advice)
    detail = f"{embedder.model}, {vectors.shape[1]} dimensions"
    return Finding("embedder", vectors.shape == (1, embedder.dimension), detail, advice)


class _Well(BaseModel):
    """What a language model is asked to answer."""

    well: bool


async def _language_model(patient: _Patient) -> Finding:
    settings = patient.settings
    if settings.llm == "off":
        return Finding("language model", ok=None, detail="none configured: the rules rewrite, explain and abstract")
    model = make_model(settings)
    advice = "check CASEBANK_LLM_…; until then the rules do what a model was to do"
    try:
        reply = await model.ask("Say in JSON that you are well.", {}, _Well)
    except CasebankError as error:
        return Finding("language model", ok=False, detail=f"{model.name}: {_said(error)}", advice=advice)
    finally:
        await model.aclose()
    tokens = reply.tokens.prompt + reply.tokens.completion
    return Finding("language model", ok=True, detail=f"{model.name} answers in JSON; that took {tokens} tokens")


async def _spaces(patient: _Patient) -> Finding:
    model = profiles.c.embedding_model
    chosen = select(model, func.count()).where(model.is_not(None)).group_by(model)
    async with patient.database.as_worker() as connection:
        counts = {str(name): number for name, number in await connection.execute(chosen)}
    here = counts.pop(patient.embedder.model, 0)
    strays = ", ".join(f"{count} in {name}" for name, count in sorted(counts.items()))
    detail = f"{here} profiles in the embedder's space" + (f"; {strays}" if strays else "")
    return Finding("spaces", not strays, detail, "casebank reembed; until then these go by keywords")


async def _sizes(patient: _Patient) -> Finding:
    sizes = text(
        "SELECT relname, pg_total_relation_size(oid) FROM pg_class"
        " WHERE relnamespace = 'public'::regnamespace AND relname = ANY(:names) ORDER BY 2 DESC, 1",
    )
    async with patient.owner.connect() as connection:
        rows = (await connection.execute(sizes, {"names": list(metadata.tables)})).all()
    return Finding("sizes", ok=None, detail=", ".join(f"{name} {size / 1e6:.1f} MB" for name, size in rows))


CHECKS: tuple[_Check, ...] = (
    _postgres,
    _pgvector,
    _schema,
    _role,
    _row_security,
    _strangers,
    _clock,
    _queue,
    _jobs,
    _keys,
    _embedder,
    _language_model,
    _spaces,
    _sizes,
)
