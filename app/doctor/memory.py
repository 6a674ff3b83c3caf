"""Checks of the memory's parts: the queue, the jobs, the keys, the embedder and the language model."""

from datetime import UTC, datetime, timedelta

from pydantic import BaseModel
from sqlalchemy import func, select

from app.doctor.installation import CheckResult, Installation, in_brief
from app.jobs.records import JobRecord, all_records
from app.jobs.schedule import SILENCE, WORKER, is_well, periods
from app.runtime import make_model
from app.settings import NoMasterKey
from retrieval.errors import CasebankError
from retrieval.tables.cases import cases, inserted_memories
from retrieval.tables.memories import memories
from retrieval.tables.procedures import reflections
from retrieval.tables.profiles import profiles
from retrieval.tables.sessions import sessions
from writer.privacy.keys import Keyring
from writer.privacy.master_keys import in_use
from writer.queue.statements import depth

QUEUES = {
    "cases": (cases, inserted_memories),
    "lessons": (reflections,),
    "sessions": (sessions,),
    "memories": (memories,),
}
WAIT = timedelta(minutes=10)
SAMPLE = 20
"""Number of users whose keys are tried."""


async def queue(installation: Installation) -> CheckResult:
    """Judges whether the workers keep up with the queues, and whether rows fail."""
    async with installation.database.as_worker() as connection:
        rows = {name: (await connection.execute(depth(*of))).all() for name, of in QUEUES.items()}
        now = (await connection.execute(select(func.now()))).scalar_one()
    # a session or a memory may be far older than its wait
    waited = [now - row.oldest for row in (*rows["cases"], *rows["lessons"]) if row.status == "pending"]
    gave_up = any(row.status == "dead" for of in rows.values() for row in of)
    age = max(waited, default=timedelta())
    numbers = {name: {row.status: row.rows for row in of} for name, of in rows.items()}
    detail = "; ".join(
        f"{name}: {of.get('pending', 0)} pending, {of.get('dead', 0)} dead"
        for name, of in numbers.items()
        if of or name == "cases"
    )
    if waited:
        detail += f"; the oldest waits for {age.total_seconds():.0f} s"
    if bound := installation.settings.limits.pending:
        detail += f"; {bound} may be pending"
    advice = "casebank requeue, once the cause is gone" if gave_up else "is a worker running? casebank worker"
    return CheckResult(not gave_up and age <= WAIT, detail, advice)


async def worker(installation: Installation) -> CheckResult:
    """Judges the workers' sign of life, if a case or its lessons wait: a worker without work gives none."""
    advice = "casebank serve, or casebank worker"
    async with installation.database.as_worker() as connection:
        known = {job.name: job for job in await all_records(connection)}
        waiting = await connection.execute(depth(cases, inserted_memories, reflections))
        pending = [row.oldest for row in waiting if row.status == "pending"]
        now = (await connection.execute(select(func.now()))).scalar_one()
    waited = any(now - oldest > SILENCE for oldest in pending)
    if (sign := known.get(WORKER)) is None:
        return CheckResult(False if waited else None, "none has run here yet", advice)
    ok = sign.last_error is None and (sign.age <= SILENCE or not waited)
    return CheckResult(ok, _how_it_went(sign), advice)


async def jobs(installation: Installation) -> CheckResult:
    """Judges the jobs of these settings; jobs that never ran are not judged."""
    async with installation.database.as_worker() as connection:
        known = await all_records(connection)
    wanted = periods(installation.settings)
    here = [(job, wanted[job.name]) for job in known if job.name in wanted]
    if not here:
        return CheckResult(ok=None, detail="no service has run here yet")
    well = all(is_well(job, every) for job, every in here)
    detail = "; ".join(_how_it_went(job) for job, _ in here)
    return CheckResult(well, detail, "is a service running? its log has job.failed, with the cause")


def _how_it_went(job: JobRecord) -> str:
    success = job.since_success
    ago = "has not run yet, or never succeeded" if success is None else f"succeeded {success.total_seconds():.0f} s ago"
    return f"{job.name} {ago}" + (f", failed {job.failures} times since: {job.last_error}" if job.last_error else "")


async def keys(installation: Installation) -> CheckResult:
    """Judges whether the master key is the database's and opens some users' keys."""
    settings, opened = installation.settings, 0
    try:
        keyring = Keyring(settings.master_key_bytes, settings.old_master_keys)
        async with installation.database.as_worker() as connection:
            keyring.masters.require(await connection.scalars(in_use()))
    except (CasebankError, NoMasterKey) as error:
        advice = "until then no process starts here; docs/operating.md, Master keys"
        return CheckResult(ok=False, detail=str(error), advice=advice)
    async with installation.database.as_worker() as connection:
        sample = select(profiles.c.user_sub).distinct().order_by(profiles.c.user_sub).limit(SAMPLE)
        users = (await connection.scalars(sample)).all()
    for user_sub in users:
        async with installation.database.as_user(user_sub, datetime.now(UTC)) as connection:
            try:
                opened += await keyring.find(connection, user_sub) is not None
            except Exception as error:  # noqa: BLE001 - any failure to open a key is the finding
                advice = "CASEBANK_MASTER_KEY or secrets.json is not the one that these keys were made with"
                return CheckResult(ok=False, detail=f"a user's key does not open: {in_brief(error)}", advice=advice)
    return CheckResult(True if opened else None, f"the master key opens {opened} of {len(users)} users' keys tried")


async def embedder(installation: Installation) -> CheckResult:
    """Judges whether the embedder answers, and with vectors of its dimension."""
    embedder = installation.embedder
    advice = "check CASEBANK_EMBEDDER and CASEBANK_OPENAI_…; until then searches go by keywords"
    try:
        vectors = await embedder.embed(["how is the memory today?"])
    except Exception as error:  # noqa: BLE001 - any failure to embed is the finding
        return CheckResult(ok=False, detail=f"{embedder.model}: {in_brief(error)}", advice=advice)
    detail = f"{embedder.model}, {vectors.shape[1]} dimensions"
    return CheckResult(vectors.shape == (1, embedder.dimension), detail, advice)


class _Well(BaseModel):
    """Answer that the language model is asked for."""

    well: bool


async def language_model(installation: Installation) -> CheckResult:
    """Judges whether the language model, if there is one, answers in the requested form."""
    settings = installation.settings
    if settings.llm == "off":
        return CheckResult(ok=None, detail="none configured: the rules explain and abstract")
    model = make_model(settings)
    advice = "check CASEBANK_LLM_…; until then the rules replace the model"
    try:
        reply = await model.ask("Say in JSON that you are well.", {}, _Well)
    except CasebankError as error:
        return CheckResult(ok=False, detail=f"{model.name}: {in_brief(error)}", advice=advice)
    finally:
        await model.aclose()
    tokens = reply.tokens.prompt + reply.tokens.completion
    return CheckResult(ok=True, detail=f"{model.name} answers in JSON; that took {tokens} tokens")


async def embedding_models(installation: Installation) -> CheckResult:
    """Judges whether the vectors of all profiles are of the embedder's model."""
    model = profiles.c.embedding_model
    chosen = select(model, func.count()).where(model.is_not(None)).group_by(model)
    async with installation.database.as_worker() as connection:
        counts = {str(name): number for name, number in await connection.execute(chosen)}
    here = counts.pop(installation.embedder.model, 0)
    strays = ", ".join(f"{count} in {name}" for name, count in sorted(counts.items()))
    detail = f"profiles in the embedder's space: {here}" + (f"; {strays}" if strays else "")
    return CheckResult(not strays, detail, "casebank reembed; until then these go by keywords")
