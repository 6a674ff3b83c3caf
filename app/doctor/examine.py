"""Runs the checks, each of which may break without the others."""

from collections.abc import Awaitable, Callable

from app.doctor import database, machine, memory
from app.doctor.finding import Finding, said
from app.doctor.installation import Installation, opened
from app.settings import Settings

Check = Callable[[Installation], Awaitable[Finding]]

CHECKS: tuple[Check, ...] = (
    database.postgres,
    database.pgvector,
    database.schema,
    database.indexes,
    database.search,
    database.role,
    database.row_security,
    database.isolation,
    database.clock,
    memory.worker,
    memory.queue,
    memory.jobs,
    memory.keys,
    memory.embedder,
    memory.language_model,
    memory.embedding_models,
    database.sizes,
)
"""What is asked once there is a connection, in the order of the report."""


async def examine(settings: Settings) -> list[Finding]:
    """Returns the findings of every check, in a fixed order; a check that breaks is a finding, too."""
    findings = [
        machine.software(),
        machine.training(settings),
        machine.disk(settings),
        machine.secrets(settings),
        machine.tokens(settings),
    ]
    try:
        async with opened(settings) as installation:
            findings.append(Finding("connection", ok=True, detail=_where(settings)))
            findings += [await _guarded(check, installation) for check in CHECKS]
    except Exception as error:  # noqa: BLE001 - whatever it was, the report must come out
        advice = "is the database running, and DATABASE_URL right? see postgres.log in the home folder"
        findings.append(Finding("connection", ok=False, detail=f"{_where(settings)}: {said(error)}", advice=advice))
    return findings


async def _guarded(check: Check, installation: Installation) -> Finding:
    try:
        return await check(installation)
    except Exception as error:  # noqa: BLE001 - as above
        name = check.__name__.replace("_", " ")
        return Finding(name, ok=False, detail=said(error), advice="the check itself failed: look at the ones before it")


def _where(settings: Settings) -> str:
    return "DATABASE_URL" if settings.database_url else f"embedded Postgres in {settings.home}"
